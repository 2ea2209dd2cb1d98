/**
 * What a bridge of Polar's sends, as a set and a task. A field that this service cannot honour is refused by its name, unless
 * it asks for nothing.
 */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { longestSeconds } from "../../base/schema/environment/healthcheck.ts";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import { hashOf } from "../../base/schema/ids.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { Environment, Task } from "../../base/schema/task.ts";
import { shell } from "../../tasks/swe/index.ts";
import { GroupPart, SetSpec } from "../ledger/index.ts";
import { AgentSettings, setOptionsOf } from "./agent-settings.ts";
import { none } from "./asks-nothing.ts";
import { gradingOf } from "./evaluators.ts";
import { EnvironmentVariables, Prepare, prepareLines } from "./prepare.ts";

/** Apptainer's words for an image of Docker's. */
const imageOfDocker = /^(?:docker-daemon:|docker:\/\/)/;

const Image = z
  .string()
  .refine(
    (image) => !/\.(?:sif|sqsh|sqfs)$|^oras:/.test(image),
    "it is an image of Apptainer's: name the Docker image that it was made from",
  )
  .transform((image) => image.trim().replace(imageOfDocker, ""))
  .pipe(ImageName);

const Runtime = z.strictObject({
  backend: z.enum(["docker", "apptainer"]).default("docker").describe("either word: the sandbox is the service's own"),
  image: Image.describe("an image of Docker's, also as `docker-daemon:name` and `docker://name`"),
  prepare: z.array(Prepare).max(100).default([]),
  eval_prepare: z.array(Prepare).max(100).nullish().describe("run before the tests, in the sandbox that grades, which `prepare` made too"),
  env: EnvironmentVariables,
  network: z
    .enum(["none", "host"], "a sandbox reaches the model by a door of its own, and no other network by its name: say none or host")
    .nullish()
    .describe("either word: in Polar it says how the gateway is reached, and here the model is reached without a network"),
  workdir: z.string().nullish(),
  direct_exec_init_command: none("it is for Apptainer"),
  cpus: z.number().positive().nullish(),
  memory_mb: z.number().int().positive().nullish(),
  storage_mb: z.number().int().positive().nullish(),
  gpus: none("sandboxes have no GPU"),
  allow_internet: z
    .boolean()
    .nullish()
    .describe("true: agent and tests reach public hosts. Left out: `prepare` alone does. false: nothing does"),
  internet_volumes: none("no folder of the host is mounted"),
  import_path: none("no code of a request is run outside of its sandbox"),
  kwargs: none("no option of Docker and no volume of the host is passed on, and the harness is mounted by the service: leave it out"),
});

const Agent = z.strictObject({
  harness: z.string().min(1).nullish().describe("a built-in harness by its name; null: the one of the service"),
  import_path: none("no code of a request is run outside of its sandbox"),
  model_name: z.string().nullish().describe("not read: the engines say what they serve"),
  settings: AgentSettings.nullish(),
  env: none("a harness is configured by the run file of the service"),
  mcp_servers: none("a harness is given no MCP servers"),
  skills_path: none("a harness is given no skills"),
  custom_shell: none("start the service with a command of your own as its harness"),
});

const noTests =
  "no folder of this machine is read for a request: start the service with the task's folder, and send metadata.alidade_task with its name in place of runtime and evaluator";

const Evaluator = z
  .strictObject({
    strategy: z.string().min(1).describe("`test_on_output` or `swebench_harness` of Polar's, or the kind of a grader"),
    config: z.record(z.string(), z.unknown()).default({}).describe("its other fields"),
    env: none("put the variables into runtime.env"),
    refresh_runtime: z.boolean().optional().describe("works are graded in a fresh sandbox in any case"),
  })
  .refine(({ strategy, config }) => !strategy.startsWith("harbor") || !Object.hasOwn(config, "tests_dir"), {
    path: ["config", "tests_dir"],
    message: noTests,
  });

/** One label of a set. */
const longestLabel = 2_000;
const Metadata = z
  .record(z.string().max(180), z.unknown())
  .default({})
  .superRefine((metadata, context) => {
    for (const [key, value] of Object.entries(metadata))
      if ((JSON.stringify(value) ?? "").length > longestLabel)
        context.addIssue({ code: "custom", path: [key], message: `give at most ${longestLabel} characters of JSON` });
  })
  .refine(({ agent_timeout: seconds }) => seconds == null || (typeof seconds === "number" && seconds > 0), {
    path: ["agent_timeout"],
    message: "give a positive number of seconds",
  })
  .refine(({ eval_sampling_seed_base: seed }) => seed == null, {
    path: ["eval_sampling_seed_base"],
    message: "rollouts of a group have no seeds of their own",
  })
  .refine(({ alidade_task: name }) => name == null || typeof name === "string", {
    path: ["alidade_task"],
    message: "give the name of a task of the service",
  })
  .describe(
    "given back as it is. agent_timeout: seconds that the harness may run. alidade_task: the name of a task of the service, in place of runtime and evaluator",
  );

/** All results of a task are one answer. */
export const mostSamples = 1_024;

export const PolarRequest = z
  .strictObject({
    // In front of `runtime`, for what is said of it takes the place of both.
    evaluator: Evaluator.nullish(),
    task_id: GroupPart.shape.group_key.max(400),
    instruction: z.string().min(1),
    num_samples: z.number().int().min(1).max(mostSamples).default(1),
    dispatch_priority: z.number().int().min(0).max(100).default(0),
    early_stop_min_usable_sessions: z
      .number()
      .int()
      .min(1)
      .nullish()
      .describe("sessions that were measured and count, after which the others are cancelled; null: all run to their end"),
    timeout_seconds: z.number().positive().max(longestSeconds).optional().describe("of each stage: set-up, harness, grading; default: 600"),
    runtime: Runtime.nullish(),
    agent: Agent,
    builder: z
      .strictObject({
        strategy: z.enum(["per_request", "prefix_merging"]).default("per_request"),
        config: none("the ends of turns come from the engine"),
      })
      .prefault({}),
    callback_url: z.string().max(2_000).nullish().describe("is sent the finished task once"),
    metadata: Metadata,
  })
  .refine(({ early_stop_min_usable_sessions: fewest, num_samples }) => fewest == null || fewest <= num_samples, {
    path: ["early_stop_min_usable_sessions"],
    message: "there are no more than num_samples",
  });
export type PolarRequest = z.infer<typeof PolarRequest>;

const metadataPrefix = "metadata.";

export function setSpecOf(request: PolarRequest): SetSpec {
  const { agent, num_samples, dispatch_priority, early_stop_min_usable_sessions: fewest, builder, metadata } = request;
  const words = Object.entries(metadata).map(([key, value]) => [metadataPrefix + key, JSON.stringify(value)]);
  return SetSpec.parse({
    harness: agent.harness?.replaceAll("_", "-") ?? null,
    samples: num_samples,
    early_stop: fewest == null || fewest === num_samples ? null : fewest,
    priority: dispatch_priority,
    labels: { builder: builder.strategy, ...Object.fromEntries(words) },
    ...setOptionsOf(agent.settings ?? {}),
  });
}

export function metadataOf(labels: SetSpec["labels"]): Record<string, unknown> {
  const own = Object.entries(labels).filter(([key]) => key.startsWith(metadataPrefix));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(metadataPrefix.length), readJson(value)]));
}

/** As a user would write it: what is wrong with it is found by whatever reads tasks. Throws `request_invalid` naming the evaluator's field. */
export function nativeTask({ task_id, instruction, runtime, evaluator, metadata, timeout_seconds = 600 }: PolarRequest): object {
  if (evaluator == null)
    throw new AlidadeError("request_invalid", "evaluator is not given: name a grader, or a task of the service as metadata.alidade_task", {
      param: "evaluator",
    });
  const { cpus, memory_mb, storage_mb, eval_prepare } = runtime ?? {};
  const sizes = Object.entries({ cpus, memory_mb, disk_mb: storage_mb }).filter(([, size]) => size != null);
  const evalPrepare = prepareLines(eval_prepare ?? []);
  const workdir = runtime?.workdir ?? Environment.shape.workdir.parse(undefined);
  const grading = gradingOf(evaluator.strategy, { config: evaluator.config, workdir, evalPrepare });
  if (grading === null && eval_prepare?.length)
    throw new AlidadeError("request_invalid", "runtime.eval_prepare: put these commands into the grader's own, or into prepare", {
      param: "runtime.eval_prepare",
    });
  const stage = { init_seconds: timeout_seconds, agent_seconds: metadata.agent_timeout ?? timeout_seconds };
  return {
    task_id: Task.shape.task_id.safeParse(task_id).success ? task_id : `polar-${hashOf(task_id).slice(0, 24)}`,
    instruction,
    environment: runtime == null ? {} : { ...environmentOf(runtime, grading?.prepare ?? ""), ...grading?.environment },
    limits: { ...grading?.limits, ...stage, grade_seconds: grading?.grade_seconds ?? timeout_seconds, ...Object.fromEntries(sizes) },
    grader: grading?.grader ?? { ...evaluator.config, kind: evaluator.strategy },
  };
}

/** Polar's agents may write anywhere, and what they wrote is there when they are graded. */
function environmentOf({ image, prepare, env, workdir, allow_internet }: z.infer<typeof Runtime>, first: string): object {
  const lines = [first, prepareLines(prepare)].join("\n");
  const network = allow_internet ? "public" : "none";
  return {
    image,
    env,
    ...(workdir != null && { workdir }),
    ...{ user: "root", writable: "root", work: "layer", network, grading_network: network },
    ...((prepare.length > 0 || first !== "") && {
      setup: { command: shell("bash", lines), network: allow_internet === false ? "none" : "public" },
    }),
  };
}
