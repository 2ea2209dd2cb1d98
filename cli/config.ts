/** What a configuration may hold: for a YAML file, the environment and flags. The schema is the manual: `alidade config --schema` prints it. */
import { z } from "zod";
import { isFile } from "../base/host/plug-ins.ts";
import { Branching } from "../base/schema/branching.ts";
import { EngineAddress } from "../base/schema/container-engine.ts";
import { NetworkAccess } from "../base/schema/network.ts";
import { Policy } from "../base/schema/policy.ts";
import { Tier } from "../base/schema/rollout.ts";
import { Purpose, RequestClass, SessionOptions } from "../base/schema/session-spec.ts";
import { GradingPlace } from "../base/schema/task.ts";
import { engineRegistry, whyNoEngineUrl } from "../engines/index.ts";
import { RewardRule } from "../graders/harbor/index.ts";
import { NamedGraderServer } from "../graders/remote/index.ts";
import { harnessRegistry } from "../harnesses/index.ts";
import { dialects } from "../proxy/dialects/index.ts";
import { Bounds } from "../proxy/http/index.ts";
import { callsAtOnce, EngineRoute, resampleLost } from "../proxy/pool/index.ts";
import { backendRegistry } from "../sandboxes/index.ts";
import { imageSources, TaskChoice } from "../tasks/sets/index.ts";

const names = (items: readonly { readonly name: string }[]): [string, ...string[]] =>
  items.map((item) => item.name) as [string, ...string[]];

/** One of a list by its name, or a user's own by its file: the list stands in the description. */
function plugIn(registry: { noun: string; list: readonly { readonly name: string }[] }, meaning: string, more: readonly string[] = []) {
  const known = [...more, ...names(registry.list)];
  const example = `./my-${registry.noun.split(" ")[0]}.ts`;
  return z
    .string()
    .refine((word) => isFile(word) || known.includes(word), {
      error: `expected one of ${known.map((name) => JSON.stringify(name)).join("|")}, or the file of a plug-in such as ${example}`,
    })
    .describe(`${meaning}: ${known.join(", ")}, or the file of a plug-in such as ${example}`);
}

/** A password in an address would be written into the run's folder with the rest of the configuration. */
function isReceiver(word: string): boolean {
  const url = URL.parse(word);
  return word === "env" || (url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "");
}

const ownPath = z.string().min(1, "give a path");
const files = z.array(z.string().refine(isFile, { error: "expected the file of a plug-in" })).default([]);

const engineFields = {
  kind: plugIn(engineRegistry, "what server it is").default("vllm"),
  api_key_env: z.string().optional().describe("name of the variable that holds the server's key; the key itself never stands in a file"),
  calls_at_once: callsAtOnce,
  resample_lost: resampleLost,
};

const NamedPolicy = Policy.extend({
  version: z.string().min(1, "give the trainer's name for the weights"),
  step: Policy.shape.step.default(null),
  engine_version: z.string().optional().describe("the engine's own name of these weights, where it is another than `version`"),
});

/** No loss asks for as many. More would add kilobytes a token to a run's records. */
export const mostTeacherTop = 64;

const RunTeacher = z.strictObject({
  engine: z
    .string()
    .refine((text) => whyNoEngineUrl(text) === null, { error: ({ input }) => whyNoEngineUrl(String(input)) ?? "" })
    .describe("URL of the teacher's server"),
  kind: plugIn(engineRegistry, "what server it is").default("vllm"),
  api_key_env: engineFields.api_key_env,
  model: z.string().min(1).optional().describe("model on that server that scores (required if it serves several)"),
  top_k: z
    .number()
    .int()
    .positive()
    .max(mostTeacherTop)
    .optional()
    .describe("also keeps this many of its likeliest tokens at each place; each adds some 25 bytes to a sampled token"),
  concurrency: z.number().int().positive().default(4).describe("rollouts that it scores at once"),
  tries: z.number().int().min(1).max(20).default(3).describe("times that it is asked about a rollout if it does not answer"),
  seconds: z
    .number()
    .positive()
    .max(86_400)
    .default(300)
    .describe("how long a graded rollout waits for it, queue and tries included; then it goes on without logprobs, with the reason"),
});
export type RunTeacher = z.infer<typeof RunTeacher>;

export const Config = z.strictObject({
  engine: z
    .strictObject({
      url: z
        .string()
        .optional()
        .describe("URL of the inference server, such as http://127.0.0.1:8000; `practice` starts the embedded one with random weights"),
      ...engineFields,
    })
    .prefault({}),
  engines: z
    .array(
      z.strictObject({
        name: z.string().min(1).describe("what routes, records and the control listener call it"),
        url: z.string().describe("as `engine.url`"),
        ...engineFields,
        models: z.array(z.string()).min(1).optional().describe("globs of the model names that it is for; absent: any"),
        policy: NamedPolicy.optional().describe("its own policy, where it is not that of all"),
        purpose: Purpose.default("train").describe(
          "train: it serves the policy that sessions train; eval, live or judge: a model beside it (a judge, a teacher), of which nothing is ever trained, and which no sandboxed harness reaches unless a route with `sandboxed` leads there",
        ),
      }),
    )
    .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, "two engines have the same name")
    .optional()
    .describe(
      "several engines; each takes kind, key, calls_at_once and resample_lost from `engine` unless it has its own. An empty list: engines are added over the control listener",
    ),
  routes: z.array(EngineRoute).default([]).describe("rules that choose the engines of a call; the first rule that fits decides"),
  pause_wait_seconds: z
    .number()
    .positive()
    .max(86_400)
    .default(300)
    .describe("a call waits so long for the end of a weight update before it is told to try again"),
  host: z.string().min(1).default("127.0.0.1").describe("address on which `serve` listens for harnesses"),
  port: z.number().int().min(0).max(65535).default(4000).describe("port on which `serve` listens for harnesses; 0 takes a free one"),
  tls: z
    .strictObject({
      cert: z.string().min(1).optional().describe("PEM file: the certificate, with those between it and its root behind it"),
      key: z.string().min(1).optional().describe("PEM file: its private key, without a passphrase"),
    })
    .prefault({})
    .describe("`serve` and `service` listen with HTTPS by this pair; it is read when they start"),
  otel: z
    .string()
    .refine(isReceiver, "give the URL of a receiver of OTLP over HTTP (its key by OTEL_EXPORTER_OTLP_HEADERS), or env")
    .optional()
    .describe(
      "where OpenTelemetry spans are sent: the URL of a receiver of OTLP over HTTP, or `env` for the one that OTEL_EXPORTER_OTLP_ENDPOINT names; absent: nowhere",
    ),
  log_format: z.enum(["text", "json"]).default("text").describe("what is said on stderr: text, or one JSON object a line with ids"),
  control_port: z.number().int().min(0).max(65535).default(4001).describe("port of the control listener, on loopback; 0 takes a free one"),
  control_token_env: z
    .string()
    .default("ALIDADE_CONTROL_TOKEN")
    .describe(
      "name of the variable that holds the control token; where it is unset, one is made: `serve` prints it, `run` puts it into control.json",
    ),
  harness: z
    .union([
      plugIn(harnessRegistry, "a harness"),
      z.strictObject({
        command: z
          .array(z.string())
          .min(1)
          .describe("one's own harness; {instruction}, {base_url}, {api_key}, {model}, {home}, {workdir} and {files} are filled in"),
        files: z
          .union([ownPath, z.array(ownPath)])
          .default([])
          .describe(
            "its files and folders, or the name of one, relative to the run file: they are packed once and mounted read-only; a word of the command that names one becomes its path there",
          ),
        python: z
          .string()
          .min(1, "give a path")
          .optional()
          .describe("a requirements.txt, relative to the run file: it is installed into the pack"),
        python_version: z
          .string()
          .regex(/^3\.\d{1,2}$/, "give a version such as 3.11")
          .default("3.11")
          .describe("the Python of the containers' image, for which it is installed; the base image has 3.11"),
        node: z
          .string()
          .min(1, "give a path")
          .optional()
          .describe(
            "a package.json, relative to the run file: its dependencies are installed into the pack, by the lock beside it where there is one",
          ),
        folder: z.string().optional().describe("the folder that these paths are relative to; default: that of the run file"),
        env: z.record(z.string(), z.string()).default({}),
        makes: z
          .array(RequestClass)
          .default([])
          .describe(
            "kinds of call that it makes beside its work, such as title or sub_agent; another one that a request claims is taken for work",
          ),
        dialects: z
          .array(z.enum(names(dialects)))
          .min(1)
          .nullable()
          .default(null)
          .describe("the dialects that it speaks, such as openai-chat; requests in another one are refused; null: all of them"),
      }),
    ])
    .default("pi")
    .describe(`which harness \`run\` starts: ${names(harnessRegistry.list).join(", ")}, the file of a plug-in, or a command of one's own`),
  tasks: z.array(z.string()).default([]).describe("task files or folders, relative to the run file"),
  choose: TaskChoice.prefault({}).describe("which of all these tasks are run, and in which order"),
  samples: z.number().int().positive().default(4).describe("rollouts of each task: they are one group"),
  branching: Branching.nullable()
    .default(null)
    .describe("forks of a group's rollouts behind their turns; null: every rollout of a group begins at the task's beginning"),
  sandbox: plugIn(backendRegistry, "where harnesses run; auto takes Docker when an engine is reachable", ["auto"]).default("auto"),
  grading: GradingPlace.nullable()
    .default(null)
    .describe(
      "where tests run: `fresh`, a new sandbox with the work; `shared`, the agent's own one, as Harbor does, in which an agent can leave what changes its grade (tier T0); null: where each task says, and fresh where it says nothing",
    ),
  keep_processes: z
    .boolean()
    .default(false)
    .describe(
      "grades every task in the agent's own sandbox while the agent's processes run (as `grading: shared`, tier T0), for sets whose tasks leave a server running, as they may with Harbor",
    ),
  min_tier: Tier.nullable()
    .default(null)
    .describe(
      "tasks whose verdicts would be below this tier are left out by name: T0 the agent's own place, T1 a fresh one, T2 a report that the work cannot write, T3 nothing of the work is run beside what grades it",
    ),
  admitted_only: z
    .boolean()
    .default(false)
    .describe(
      "`run` leaves out, by name, each task that `alidade check` has not admitted: flaky, hackable and unproven ones; `service` refuses it",
    ),
  max_null_share: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe(
      "a task is set aside, with an alarm, once three of its rollouts, and more than this share, could not be graded: the run, or the service, goes on with the others; 1: never",
    ),
  docker_engines: z
    .array(EngineAddress)
    .default([])
    .describe("engines that sandboxes are spread over, instead of the one of this machine; a word is an address, as `host`"),
  graders: files.describe("files of plug-ins: graders that tasks may name beside the built-in ones"),
  allocation_policies: files.describe(
    "files of plug-ins: allocation policies that sets of the service may name beside the built-in ones; its nodes need them too",
  ),
  task_formats: files.describe("files of plug-ins: forms of tasks that are known beside the built-in ones, and asked before them"),
  grader_servers: z
    .array(NamedGraderServer)
    .default([])
    .describe(
      "servers that tasks may be graded by (`remote`): each by its origin, with `api_key_env` where it wants a key; a task is sent to no other one",
    ),
  task_env: z
    .array(z.string().min(1))
    .default([])
    .describe("names of this host's variables that tasks may read where they ask for them (Harbor's form); others are refused"),
  images: z
    .enum(imageSources)
    .default("pull")
    .describe(
      "where images come from: `pull`, or `build`, by the recipe in a row of a SWE set (rows without one are left out) and by the Dockerfile beside a Harbor task that names an image",
    ),
  repositories: z
    .string()
    .nullable()
    .default(null)
    .describe("folder of bare clones (`owner/name.git`) that such images are built from; others are cloned from github.com; null: all are"),
  harbor_reward: RewardRule.nullable()
    .default(null)
    .describe(
      "which number of a Harbor verifier is the reward where the task does not say so: `mean`, `min`, `{ key: name }` or `{ weights: { name: 2 } }`; null: the one that is called `reward`, or the only one",
    ),
  unsafe_host: z
    .boolean()
    .default(false)
    .describe("allow the process sandbox, which isolates nothing: harness and tests run as you, on this machine"),
  concurrency: z
    .strictObject({
      init: z.number().int().positive().default(2).describe("sandboxes prepared at once"),
      run: z
        .number()
        .int()
        .positive()
        .optional()
        .describe("harnesses running at once; default: 4, or as many as fit where the machine's memory or disk holds fewer sandboxes"),
      evaluation: z
        .number()
        .int()
        .min(0)
        .default(0)
        .describe(
          "how many harnesses of `run` evaluations alone may have, in a service and its nodes, so that they do not wait for those of training",
        ),
      post: z.number().int().positive().optional().describe("gradings at once; default: 2, or 1 where the machine holds fewer sandboxes"),
    })
    .prefault({}),
  warm: z
    .strictObject({
      sandboxes: z
        .number()
        .int()
        .min(0)
        .max(1_000)
        .default(0)
        .describe("sandboxes of waiting rollouts and gradings that `run` makes ahead of their turn; each may take what one in use may"),
      seconds: z
        .number()
        .positive()
        .max(3_600)
        .default(600)
        .describe("the age at which a sandbox that was made ahead and not used is removed"),
    })
    .prefault({}),
  disk: z
    .strictObject({
      images_gb: z
        .number()
        .positive()
        .nullable()
        .default(null)
        .describe(
          "gigabytes that the engine's images may take together; during a run those that Alidade made or pulled are removed beyond it, least recently used first and none in use; null: any",
        ),
      keep_free_gb: z
        .number()
        .min(0)
        .default(1)
        .describe("free gigabytes on the sandboxes' disk below which no image is pulled or built and no rollout begins; 0: none"),
    })
    .prefault({}),
  overcommit: z
    .boolean()
    .default(false)
    .describe("run also where all sandboxes together may take more memory or disk than the machine has"),
  allow_public_network: z
    .boolean()
    .default(false)
    .describe("run also tasks that ask for the whole public network; named hosts (`allow`) need no word of yours"),
  verifier_network: NetworkAccess.nullable()
    .default(null)
    .describe(
      "what tests of Harbor's and Terminal-Bench's tasks reach if the task does not say: `none`, `public`, or `{ allow: [names] }`; `public` also allows the public network to tests of other tasks that ask for it; null: nothing",
    ),
  ...SessionOptions.shape,
  // An open session trains nothing by default; a run is made for training.
  purpose: SessionOptions.shape.purpose.default("train"),
  bounds: Bounds.prefault({}).describe("what one sandboxed session may take of the proxy that it shares with others"),
  policy: NamedPolicy.nullable()
    .default(null)
    .describe("the trainer's name for the weights, stamped on every call; refused where an engine says that it serves others"),
  teacher: RunTeacher.nullable()
    .default(null)
    .describe(
      "another model that scores each graded training rollout before its result is handed over, as `alidade score` does for a finished run; null: none",
    ),
  retries: z.number().int().min(0).default(1).describe("more attempts at a rollout after a failure of the infrastructure"),
  resume: z
    .enum(["replay", "again"])
    .default("replay")
    .describe(
      "how a rollout goes on if its process was killed or stopped, or its node died. `replay`: from its last finished call, in a fresh sandbox where its tools run again; if that replay differs from the record, it begins anew. `again`: it always begins anew",
    ),
  out: z.string().default("runs").describe("folder for what is recorded"),
});
export type Config = z.infer<typeof Config>;

/** The options of sessions among the keys of a configuration, as one object. */
export function sessionOptionsOf(config: SessionOptions): SessionOptions {
  const keys = Object.keys(SessionOptions.shape) as (keyof SessionOptions)[];
  return Object.fromEntries(keys.map((key) => [key, config[key]])) as SessionOptions;
}

/** For `alidade config --schema`. */
export function configSchema(): unknown {
  return z.toJSONSchema(Config, { io: "input" });
}
