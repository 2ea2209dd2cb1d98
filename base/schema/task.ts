/**
 * A task in Alidade's own shape; the loaders in tasks/ make it from the formats people have. Task files are untrusted
 * input: they may name no host path outside their own folder and no Docker option.
 */
import { z } from "zod";
import { AbsolutePath } from "./environment/absolute-path.ts";
import { Build } from "./environment/build.ts";
import { Display } from "./environment/display.ts";
import { Healthcheck, longestSeconds } from "./environment/healthcheck.ts";
import { ImageName } from "./environment/image-name.ts";
import { Services } from "./environment/services.ts";
import { ownPlace, ToolServers } from "./environment/tool-servers.ts";
import { JsonObject } from "./message.ts";
import { NetworkAccess } from "./network.ts";
import { SimulatedUser } from "./simulated-user.ts";

export const Limits = z.strictObject({
  init_seconds: z.number().positive().max(longestSeconds).default(300).describe("seconds to prepare the sandbox"),
  agent_seconds: z.number().positive().default(600).describe("seconds that the harness may run; queue and pause are not counted"),
  grade_seconds: z.number().positive().max(longestSeconds).default(300).describe("seconds that the grader may run"),
  max_turns: z.number().int().positive().optional().describe("LLM calls"),
  max_sampled_tokens: z.number().int().positive().optional(),
  memory_mb: z.number().int().positive().default(2048).describe("memory of the sandbox in MiB"),
  cpus: z.number().positive().default(1),
  pids: z.number().int().positive().default(512),
  disk_mb: z.number().int().positive().default(2048).describe("writable space of the sandbox in MiB"),
  work_files: z
    .number()
    .int()
    .positive()
    .max(1_000_000)
    .optional()
    .describe("files that the work may hold, and twice as many paths; left out: 100 000"),
  work_mb: z.number().int().positive().optional().describe("size of the work's files in MiB, at most `disk_mb`; left out: 1024"),
  output_bytes: z.number().int().positive().default(4_000_000).describe("bytes kept of what a command prints"),
});
export type Limits = z.infer<typeof Limits>;

function noSuchService(names: string[]): string {
  return `is no service: there ${names.length === 0 ? "are none" : `is ${names.join(", ")}`}`;
}

export const Environment = z
  .strictObject({
    /** Image of the sandbox; null is Alidade's own base image. The process sandbox ignores it. */
    image: ImageName.nullable().default(null),
    /** Or an image that is built from files beside the task; the loader resolves the context. */
    build: Build.nullable().default(null),
    /** Where the work is, inside the sandbox. */
    workdir: z.string().startsWith("/").default("/work"),
    /** Files put into the workdir before the agent starts: a folder on the host, resolved by the loader. */
    files: z.string().nullable().default(null),
    /** Read-only folders mounted beside it (dependencies): path inside -> folder on the host, resolved by the loader. */
    mounts: z.record(z.string(), z.string()).default({}),
    env: z.record(z.string(), z.string()).default({}),
    user: z
      .enum(["agent", "root"])
      .default("agent")
      .describe("agent: uid 1000; root: uid 0, with what package managers need where all is writable"),
    writable: z
      .enum(["workdir", "root"])
      .default("workdir")
      .describe("where files may change: below the workdir, or everywhere that the user's rights allow; HOME and /tmp always"),
    work: z
      .union([z.enum(["workdir", "layer"]), z.array(AbsolutePath).min(1).max(100)])
      .default("workdir")
      .describe("what crosses to the grader: the workdir with everything in it, all that changed, or what changed below these paths"),
    healthcheck: z
      .union([z.literal("none"), Healthcheck])
      .nullable()
      .default(null)
      .describe("when the sandbox is ready; null: as the image's HEALTHCHECK says; none: at once"),
    inotify: z
      .boolean()
      .default(false)
      .describe("processes may watch files; all sandboxes of an engine share its instances, so one of them can take them all"),
    platform: z
      .string()
      .regex(/^linux\/[a-z0-9]+$/, "linux/ and the CPU, as in linux/amd64")
      .nullable()
      .default(null)
      .describe("platform that the image must have"),
    network: NetworkAccess.default("none").describe(
      "what the agent's commands reach beside the model: nothing, named hosts, or any public one",
    ),
    setup: z
      .strictObject({
        command: z.array(z.string()).min(1).describe("run in the workdir, after the task's files were put there"),
        network: NetworkAccess.default("none").describe(
          "what this command reaches; cut before the agent starts, and before a work is graded",
        ),
        user: z.enum(["sandbox", "root"]).default("sandbox").describe("sandbox: the sandbox's own user; root: uid 0, as for user"),
      })
      .nullable()
      .default(null),
    conceal: z
      .array(z.string())
      .min(1)
      .nullable()
      .default(null)
      .describe(
        "a command that takes away what an agent may not see, such as hidden tests and git history: run after `setup` in the agent's sandbox and not in the one that grades; no .git at the top of the workdir crosses to the grader then",
      ),
    grading_network: NetworkAccess.default("none").describe("what the sandbox that grades reaches"),
    repeatable: z
      .boolean()
      .optional()
      .describe(
        "false: the same commands may come to something else, so replays and forks of its rollouts must be asked for; left out: false where its agent reaches hosts or a service",
      ),
    services: Services.optional().describe("containers beside the sandbox, by the names that commands inside reach them at"),
    grading_services: z
      .array(z.string().min(1))
      .max(8)
      .optional()
      .describe(
        "services that are started anew beside the sandbox that grades; left out: those in the sandbox's own network, and none apart",
      ),
    display: Display.optional().describe("a screen that the agent looks at and acts on, shown by one of these services"),
    tools: ToolServers.optional().describe("servers of tools (MCP) in these services, which the harness gets"),
    skills: AbsolutePath.optional().describe(
      "a folder of the sandbox with a folder for each skill (SKILL.md); after `setup` it is copied to where the harness looks for skills",
    ),
  })
  .refine(({ image, build }) => image === null || build === null, {
    path: ["build"],
    message: "an environment has an image or a build, and not both",
  })
  .superRefine(({ services = {}, tools = [], grading_services = [], display }, { addIssue }) => {
    const names = [...Object.keys(services), ...(display && !Object.hasOwn(services, display.service) ? [display.service] : [])];
    for (const [index, name] of grading_services.entries()) {
      const path = ["grading_services", index];
      if (!Object.hasOwn(services, name)) addIssue({ code: "custom", path, message: noSuchService(names) });
      const missing = Object.keys(services[name]?.depends_on ?? {}).find((other) => !grading_services.includes(other));
      if (missing !== undefined) addIssue({ code: "custom", path, message: `is ${name}, which depends on ${missing}: name that one too` });
    }
    for (const [index, { service }] of tools.entries())
      if (service !== ownPlace && !names.includes(service)) {
        addIssue({ code: "custom", path: ["tools", index, "service"], message: noSuchService(names) });
      }
  });
export type Environment = z.infer<typeof Environment>;

/** A script that makes the known solution inside a sandbox, for tasks whose solution is no patch. */
export const GoldScript = z.strictObject({
  files: z.string().min(1).describe("folder on the host; the loader resolves the path"),
  at: AbsolutePath.default("/solution").describe("where its files are put in the sandbox; gone again before the work is taken out"),
  command: z.array(z.string()).min(1).describe("run in the workdir as the sandbox's user; its exit code says nothing"),
  env: z.record(z.string(), z.string()).default({}),
});
export type GoldScript = z.infer<typeof GoldScript>;

/** A tool call that `alidade check` makes instead of an agent. */
export const ToolCallOrder = z.strictObject({
  server: z.string().min(1),
  tool: z.string().min(1),
  arguments: JsonObject.default({}),
});
export type ToolCallOrder = z.infer<typeof ToolCallOrder>;

/** Bounds a solution. A longer one is not written by hand. */
const mostCalls = 1_000;

/** What the agent gets for one step of a task. The step's grader has the same name, in the task's grader of kind `steps`. */
export const TaskStep = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][\w.-]{0,99}$/, "letters, digits, dot, dash and underscore, at most 100"),
  instruction: z.string().min(1),
  files: z
    .string()
    .nullable()
    .default(null)
    .describe("put into the workdir before it begins: a folder on the host; the loader resolves the path"),
  setup: z.array(z.string()).min(1).nullable().default(null).describe("run in the workdir after that, as the sandbox's user"),
  healthcheck: Healthcheck.nullable().default(null).describe("after `setup`"),
  agent_seconds: z.number().positive().describe("seconds that the harness may run for this step"),
  gold_script: GoldScript.optional(),
});
export type TaskStep = z.infer<typeof TaskStep>;

/** Which grader, and what that one is told (`graders/`): its own schema reads the rest where a task is loaded. */
export const GraderSpec = z.looseObject({ kind: z.string().min(1) });
export type GraderSpec = z.infer<typeof GraderSpec>;

/** Where the tests of a work are run. */
export const GradingPlace = z.enum(["fresh", "shared"]);
export type GradingPlace = z.infer<typeof GradingPlace>;

/** Lowest and highest reward. */
const RewardRange = z
  .tuple([z.number(), z.number()])
  .refine(([lowest, highest]) => lowest < highest, "the lowest reward, then the highest, as in [-1, 1]");

export const Task = z.strictObject({
  task_id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "letters, digits, dot, dash and underscore, at most 100"),
  instruction: z.string().min(1),
  simulated_user: SimulatedUser.optional().describe("a model that speaks for the user: the agent and it talk in turns"),
  environment: Environment.prefault({}),
  limits: Limits.prefault({}),
  grader: GraderSpec,
  reward_range: RewardRange.optional().describe("the lowest and the highest reward that its grader may give; left out: 0 and 1"),
  grading: GradingPlace.optional().describe(
    "where tests, programs and scripts that grade are run: fresh, a new sandbox with the work (left out: this); shared, the agent's own one, after its processes were ended",
  ),
  keep_processes: z
    .boolean()
    .optional()
    .describe(
      "for tasks whose outcome is a server that runs: the agent's processes live while its work is graded, in its own sandbox (`grading` is shared then), at tier T0",
    ),
  /** The gold patch (unified diff from the workdir), for `alidade check` only; never inside a sandbox with an agent. */
  gold_patch: z.string().nullable().default(null),
  /** Or a folder on the host with files that are copied over the base; the loader resolves the path. */
  gold_files: z.string().nullable().default(null),
  /** Or a script that is run in a sandbox of its own. */
  gold_script: GoldScript.optional(),
  /** The known solution as calls of its tool servers, in order. */
  gold_calls: z.array(ToolCallOrder).max(mostCalls).optional(),
  gold_answer: z.string().optional().describe("what the known solution says last, beside `gold_calls`; left out: nothing"),
  bad_calls: z
    .record(z.string(), z.array(ToolCallOrder).min(1).max(mostCalls))
    .optional()
    .describe("calls that must not earn more than none, by a name that says what is wrong with them"),
  /**
   * Steps that the agent does one after the other in one sandbox. Each step is graded by itself. The agent reads the instruction of
   * each step, and not the task's `instruction`. `limits.agent_seconds` and `limits.grade_seconds` bound all steps together.
   */
  steps: z.array(TaskStep).min(1).max(100).optional(),
  data_source: z.string().nullable().default(null),
  labels: z.record(z.string(), z.string()).default({}),
});
export type Task = z.infer<typeof Task>;
