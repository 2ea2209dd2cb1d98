/** `task.toml` of Harbor 1.0 to 1.4, with its defaults, as published. What Harbor ignores is ignored here too, and said. */
import { posix } from "node:path";
import { z } from "zod";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import { RewardRule } from "../../graders/harbor/index.ts";

const seconds = z.number().positive().max(2_000_000);
const Strings = z.record(z.string(), z.string());
/** A name, or a uid. */
const User = z
  .union([z.string().min(1), z.int().min(0)])
  .nullable()
  .default(null);

const hosts = z.array(z.string().transform((host) => host.trim().toLowerCase().replace(/\.$/, ""))).nullable();
const Phase = {
  network_mode: z.enum(["public", "no-network", "allowlist"]).nullable().default(null),
  allowed_hosts: hosts.default(null),
};

/** "4G", "512M", "2048K" of older tasks, in MiB. */
const Size = z
  .string()
  .regex(/^\s*\d+(?:\.\d+)?\s*[GMK]\s*$/i, "a size such as 4G, 512M or 2048K")
  .transform((text) => {
    const factor = { G: 1024, M: 1, K: 1 / 1024 }[text.trim().slice(-1).toUpperCase() as "G" | "M" | "K"];
    return Math.max(1, Math.floor(Number.parseFloat(text) * factor));
  });
const megabytes = z.int().positive().nullable().default(null);

const HealthcheckConfig = z.strictObject({
  command: z.string().min(1),
  interval_sec: seconds.default(5),
  timeout_sec: seconds.default(30),
  start_period_sec: z.number().nonnegative().max(2_000_000).default(0),
  start_interval_sec: seconds.default(5),
  retries: z.int().positive().default(3),
});
export type HealthcheckConfig = z.infer<typeof HealthcheckConfig>;

const EnvironmentConfig = z.strictObject({
  ...Phase,
  allow_internet: z.boolean().nullable().default(null),
  build_timeout_sec: seconds.default(600),
  docker_image: ImageName.nullable().default(null),
  os: z.preprocess((os) => (typeof os === "string" ? os.toLowerCase() : os), z.string()).default("linux"),
  cpus: z.number().positive().nullable().default(null),
  memory_mb: megabytes,
  storage_mb: megabytes,
  memory: Size.nullable().default(null),
  storage: Size.nullable().default(null),
  gpus: z.int().min(0).nullable().default(null),
  gpu_types: z.array(z.string()).nullable().default(null),
  tpu: z.unknown().optional(),
  mcp_servers: z
    .array(
      z.looseObject({
        name: z.string(),
        transport: z.string().default("sse"),
        url: z.string().nullable().default(null),
        command: z.string().min(1).nullable().default(null),
        args: z.array(z.string()).default([]),
      }),
    )
    .default([]),
  env: Strings.default({}),
  skills_dir: z.string().min(1).nullable().default(null),
  healthcheck: HealthcheckConfig.nullable().default(null),
  workdir: z
    .string()
    .startsWith("/")
    .transform((path) => posix.resolve(path))
    .nullable()
    .default(null),
});
export type EnvironmentConfig = z.infer<typeof EnvironmentConfig>;

const insidePath = z
  .string()
  .min(1)
  .refine((path) => !path.split("/").includes(".."), "a path without ..");

const ArtifactConfig = z.preprocess(
  (value) => (typeof value === "string" ? { source: value } : value),
  z.strictObject({
    source: insidePath,
    destination: z.string().nullable().default(null),
    exclude: z.array(z.string()).default([]),
    service: z.string().default("main"),
  }),
);

const CollectConfig = z.strictObject({
  command: z.string().min(1),
  service: z.string().default("main"),
  timeout_sec: seconds.default(60),
  user: User,
});

const AgentConfig = z.strictObject({ ...Phase, timeout_sec: seconds.nullable().default(null), user: User });

const VerifierConfig = z
  .strictObject({
    ...Phase,
    timeout_sec: seconds.default(600),
    env: Strings.default({}),
    user: User,
    environment_mode: z.enum(["shared", "separate"]).nullable().default(null),
    environment: EnvironmentConfig.nullable().default(null),
    collect: z.array(CollectConfig).default([]),
  })
  .refine(({ environment_mode, environment }) => environment_mode !== "shared" || environment === null, {
    path: ["environment"],
    message: 'stands beside environment_mode = "shared": remove one of them',
  });
export type VerifierConfig = z.infer<typeof VerifierConfig>;

const StepConfig = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9][\w.-]*$/, "a folder name below steps/"),
  agent: AgentConfig.prefault({}),
  verifier: VerifierConfig.prefault({}),
  min_reward: z
    .union([z.number(), z.record(z.string(), z.number())])
    .nullable()
    .default(null),
  healthcheck: HealthcheckConfig.nullable().default(null),
  artifacts: z.array(ArtifactConfig).default([]),
});
export type StepConfig = z.infer<typeof StepConfig>;

/** Ours, among the free words of `[metadata]`. */
const OwnMetadata = z.strictObject({
  reward_range: z.tuple([z.number(), z.number()]).optional(),
  hold_back: z.boolean().default(true),
  /** The agent's processes live while the tests run, as with Harbor. */
  keep_processes: z.boolean().default(false),
  /** Which of the verifier's numbers is the reward. */
  reward: RewardRule.optional(),
});

export const TaskConfig = z.strictObject({
  schema_version: z
    .string()
    .regex(/^1\.[0-4]$|^1$/, "1.0 to 1.4")
    .default("1.4"),
  source: z.string().nullable().default(null),
  task: z
    .strictObject({
      name: z.string().regex(/^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/, "org/name, of letters, digits, dot, dash and underscore"),
      version: z.string().min(1).nullable().default(null),
      description: z.string().default(""),
      authors: z.array(z.looseObject({ name: z.string() })).default([]),
      keywords: z.array(z.string()).default([]),
    })
    .nullable()
    .default(null),
  metadata: z.looseObject({ alidade: OwnMetadata.prefault({}) }).prefault({}),
  agent: AgentConfig.prefault({}),
  verifier: VerifierConfig.prefault({}),
  solution: z.strictObject({ env: Strings.default({}) }).prefault({}),
  environment: EnvironmentConfig.prefault({}),
  multi_step_reward_strategy: z.enum(["mean", "final"]).nullable().default(null),
  steps: z
    .array(StepConfig)
    .max(100)
    .refine((steps) => new Set(steps.map(({ name }) => name.toLowerCase())).size === steps.length, "two steps have one name")
    .nullable()
    .default(null),
  artifacts: z.array(ArtifactConfig).default([]),
});
export type TaskConfig = z.infer<typeof TaskConfig>;
