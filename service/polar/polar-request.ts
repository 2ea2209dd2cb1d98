/**
 * What a bridge of Polar's sends, as a set and a task. A field that this service cannot honour is refused by its name, unless
 * it asks for nothing.
 */
import { z } from "zod";
import { AlidadeError } from "../../errors.ts";
import { GroupPart, SetSpec } from "../../ledger/index.ts";
import { longestSeconds } from "../../schema/environment/healthcheck.ts";
import { ImageName } from "../../schema/environment/image-name.ts";
import { hashOf } from "../../schema/ids.ts";
import { readJson } from "../../schema/read-json.ts";
import { Task } from "../../schema/task.ts";
import { quoted } from "../../tasks/swe/published-task.ts";

/** A field that may ask for nothing only. */
const none = (why: string) => z.unknown().optional().refine(asksNothing, why);

function asksNothing(value: unknown): boolean {
  return !value || (typeof value === "object" && Object.keys(value).length === 0);
}

const EnvironmentVariables = z.record(z.string().regex(/^[A-Za-z_]\w*$/, "the name of a variable"), z.string()).default({});

const Prepare = z.strictObject({
  type: z.literal("exec", "files cannot be uploaded from here: put them into the image, or make them by a command"),
  command: z.string().min(1),
  cwd: z.string().nullish(),
  env: EnvironmentVariables.nullish(),
  max_attempts: z.literal(1, "a command is tried once: put the loop into it").optional(),
  retry_backoff_seconds: none("a command is tried once: put the loop into it"),
  source: none("it is for uploads"),
  target: none("it is for uploads"),
});

const Runtime = z.strictObject({
  backend: z.literal("docker", "the sandbox is the service's: docker is the only word for it").default("docker"),
  image: ImageName,
  prepare: z.array(Prepare).max(100).default([]),
  eval_prepare: none("grading begins with what `prepare` made"),
  env: EnvironmentVariables,
  network: z.literal("none", "sandboxes have a network of their own: leave it out, and say allow_internet").nullish(),
  workdir: z.string().nullish(),
  direct_exec_init_command: none("it is for Apptainer"),
  cpus: z.number().positive().nullish(),
  memory_mb: z.number().int().positive().nullish(),
  storage_mb: z.number().int().positive().nullish(),
  gpus: none("sandboxes have no GPU"),
  allow_internet: z.boolean().default(false),
  internet_volumes: none("no folder of the host is mounted"),
  import_path: none("no code of a request is run outside of its sandbox"),
  kwargs: none("no option of Docker is passed on"),
});

const Agent = z.strictObject({
  harness: z.string().min(1).nullish().describe("a built-in harness by its name; null: the one of the service"),
  import_path: none("no code of a request is run outside of its sandbox"),
  model_name: z.string().nullish().describe("not read: the engines say what they serve"),
  settings: none("a harness is configured by the run file of the service"),
  env: none("a harness is configured by the run file of the service"),
  mcp_servers: none("a harness is given no MCP servers"),
  skills_path: none("a harness is given no skills"),
  custom_shell: none("start the service with a command of your own as its harness"),
});

const Evaluator = z.strictObject({
  strategy: z.string().min(1).describe("the kind of a grader"),
  config: z.record(z.string(), z.unknown()).default({}).describe("its other fields"),
  env: none("put the variables into runtime.env"),
  refresh_runtime: z.boolean().optional().describe("works are graded in a fresh sandbox in any case"),
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
    task_id: GroupPart.shape.group_key.max(400),
    instruction: z.string().min(1),
    num_samples: z.number().int().min(1).max(mostSamples).default(1),
    dispatch_priority: z.number().int().min(0).max(100).default(0),
    early_stop_min_usable_sessions: z.number().int().nullish().describe("num_samples, or left out"),
    timeout_seconds: z.number().positive().max(longestSeconds).optional().describe("of each stage: set-up, harness, grading; default: 600"),
    runtime: Runtime.nullish(),
    agent: Agent,
    builder: z
      .strictObject({
        strategy: z.enum(["per_request", "prefix_merging"]).default("per_request"),
        config: none("the ends of turns come from the engine"),
      })
      .prefault({}),
    evaluator: Evaluator.nullish(),
    callback_url: z.string().max(2_000).nullish().describe("is sent the finished task once"),
    metadata: Metadata,
  })
  .refine(({ early_stop_min_usable_sessions: fewest, num_samples }) => fewest == null || fewest === num_samples, {
    path: ["early_stop_min_usable_sessions"],
    message: "all sessions of a task run to their end: leave it out",
  });
export type PolarRequest = z.infer<typeof PolarRequest>;

const metadataPrefix = "metadata.";

export function setSpecOf({ agent, num_samples, dispatch_priority, builder, metadata }: PolarRequest): SetSpec {
  const words = Object.entries(metadata).map(([key, value]) => [metadataPrefix + key, JSON.stringify(value)]);
  return SetSpec.parse({
    harness: agent.harness?.replaceAll("_", "-") ?? null,
    samples: num_samples,
    priority: dispatch_priority,
    labels: { builder: builder.strategy, ...Object.fromEntries(words) },
  });
}

export function metadataOf(labels: SetSpec["labels"]): Record<string, unknown> {
  const own = Object.entries(labels).filter(([key]) => key.startsWith(metadataPrefix));
  return Object.fromEntries(own.map(([key, value]) => [key.slice(metadataPrefix.length), readJson(value)]));
}

/** As a user would write it: what is wrong with it is found by whatever reads tasks. */
export function nativeTask({ task_id, instruction, runtime, evaluator, metadata, timeout_seconds = 600 }: PolarRequest): object {
  if (evaluator == null)
    throw new AlidadeError("request_invalid", "evaluator is not given: name a grader, or a task of the service as metadata.alidade_task", {
      param: "evaluator",
    });
  const { cpus, memory_mb, storage_mb } = runtime ?? {};
  const sizes = Object.entries({ cpus, memory_mb, disk_mb: storage_mb }).filter(([, size]) => size != null);
  const [init_seconds, grade_seconds] = [timeout_seconds, timeout_seconds];
  return {
    task_id: Task.shape.task_id.safeParse(task_id).success ? task_id : `polar-${hashOf(task_id).slice(0, 24)}`,
    instruction,
    environment: runtime == null ? {} : environmentOf(runtime),
    limits: { init_seconds, agent_seconds: metadata.agent_timeout ?? timeout_seconds, grade_seconds, ...Object.fromEntries(sizes) },
    grader: { ...evaluator.config, kind: evaluator.strategy },
  };
}

/** Polar's agents may write anywhere, and what they wrote is there when they are graded. */
function environmentOf({ image, prepare, env, workdir, allow_internet }: z.infer<typeof Runtime>): object {
  const network = allow_internet ? "public" : "none";
  const command = ["bash", "-ec", prepare.map(shellLine).join("\n")];
  return {
    image,
    env,
    ...(workdir != null && { workdir }),
    ...{ user: "root", writable: "root", work: "layer", network, grading_network: network },
    ...(prepare.length > 0 && { setup: { command, network } }),
  };
}

function shellLine({ command, cwd, env }: z.infer<typeof Prepare>): string {
  const variables = Object.entries(env ?? {}).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return ["(", ...(cwd == null ? [] : [`cd ${quoted(cwd)}`]), ...variables, command, ")"].join("\n");
}
