/** What a service of a compose file may say. Any other key is refused before anything starts. */
import { z } from "zod";
import { ImageName } from "../../../base/schema/environment/image-name.ts";
import { Argv, Duration, Memory, Pairs } from "./compose-words.ts";

const Count = z.union([z.number(), z.string().regex(/^\d+(?:\.\d+)?$/, "a number")]).transform(Number);
const Names = z.array(z.string());

const Condition = z.enum(["service_started", "service_healthy", "service_completed_successfully"]);

/** Service -> what is waited for. */
const DependsOn = z.union([
  Names.transform((names) => Object.fromEntries(names.map((name) => [name, "service_started" as const]))),
  z
    .record(
      z.string(),
      z.strictObject({
        condition: Condition.default("service_started"),
        restart: z.boolean().optional(),
        required: z.literal(true).optional(),
      }),
    )
    .transform((waits) => Object.fromEntries(Object.entries(waits).map(([name, { condition }]) => [name, condition]))),
]);

const ComposeHealthcheck = z.strictObject({
  test: z.union([z.string().min(1), Names.min(1)]).optional(),
  disable: z.boolean().default(false),
  interval: Duration.default(30),
  timeout: Duration.default(30),
  retries: Count.default(3),
  start_period: Duration.default(0),
  /** It is tried every second in any case. */
  start_interval: Duration.optional(),
});
export type ComposeHealthcheck = z.infer<typeof ComposeHealthcheck>;

const NetworkPlace = z.strictObject({ aliases: Names.default([]) }).nullable();

/** Network -> more names there. */
const NetworkNames = z.union([
  Names.transform((names) => names.map((name) => ({ name, aliases: [] as string[] }))),
  z
    .record(z.string(), NetworkPlace)
    .transform((all) => Object.entries(all).map(([name, place]) => ({ name, aliases: place?.aliases ?? [] }))),
]);

const ownVolume = "a volume of this service alone, as in data:/var/lib/data: the host's files are not given to services";
const volumeName = /^[A-Za-z0-9][\w.-]*$/;

/** A named volume as `{ source, target }`. */
const Volume = z.union(
  [
    z
      .string()
      .regex(/^[A-Za-z0-9][\w.-]*:\/[^:]*(?::rw)?$/, ownVolume)
      .transform((text) => ({ source: text.split(":")[0] ?? "", target: text.split(":")[1] ?? "" })),
    z
      .strictObject({
        type: z.literal("volume", ownVolume),
        source: z.string().regex(volumeName, ownVolume),
        target: z.string().startsWith("/"),
      })
      .transform(({ source, target }) => ({ source, target })),
  ],
  ownVolume,
);

const Most = z.strictObject({ cpus: Count.optional(), memory: Memory.optional(), pids: Count.optional() });

/** What holds for a sandbox anyway, or does not change what runs. `restart` is one: a service that ends stays ended. */
const ignored = z.unknown().optional();

const common = {
  environment: Pairs.default({}),
  healthcheck: ComposeHealthcheck.optional(),
  depends_on: DependsOn.default({}),
  networks: NetworkNames.optional(),
  cap_drop: ignored,
  container_name: z.string().optional(),
  expose: ignored,
  hostname: z.string().optional(),
  init: ignored,
  labels: ignored,
  pull_policy: ignored,
  restart: ignored,
  stdin_open: ignored,
  stop_grace_period: ignored,
  stop_signal: ignored,
  tty: ignored,
};

export const SidecarConfig = z.strictObject({
  ...common,
  image: ImageName.optional(),
  build: z
    .union([
      z.string().transform((context) => ({ context, dockerfile: "Dockerfile", args: {} })),
      z.strictObject({ context: z.string().default("."), dockerfile: z.string().default("Dockerfile"), args: Pairs.default({}) }),
    ])
    .optional(),
  command: Argv.nullable().optional(),
  entrypoint: Argv.nullable().optional(),
  user: z.union([z.string(), z.int()]).transform(String).optional(),
  working_dir: z.string().optional(),
  volumes: z.array(Volume).default([]),
  mem_limit: Memory.optional(),
  cpus: Count.optional(),
  pids_limit: Count.optional(),
  deploy: z
    .strictObject({ resources: z.strictObject({ limits: Most.default({}), reservations: ignored }).default({ limits: {} }) })
    .optional(),
});
export type SidecarConfig = z.infer<typeof SidecarConfig>;

/** The agent's own container. Its image, its limits and its user stand in task.toml and its Dockerfile. */
export const MainConfig = z.strictObject(common);
export type MainConfig = z.infer<typeof MainConfig>;

/** Why a key is refused, where it asks for more than a service may have. */
export const refusedKeys = new Map([
  ["privileged", "services have no capabilities"],
  ["cap_add", "services have no capabilities"],
  ["security_opt", "services have the profile of the sandbox"],
  ["devices", "services have no device of the host"],
  ["network_mode", "services share the sandbox's network, which leads nowhere"],
  ["pid", "services see no processes but their own"],
  ["ipc", "services have a memory of their own"],
  ["userns_mode", "services have the users of the sandbox"],
  ["cgroup_parent", "services are bounded as the sandbox is"],
  ["ports", "nothing is published on the host: services are reached by name, so remove it or write expose"],
  ["extends", "write the service out"],
  ["env_file", "write environment"],
  ["configs", "put the files into the service's image"],
  ["secrets", "put the files into the service's image"],
]);
