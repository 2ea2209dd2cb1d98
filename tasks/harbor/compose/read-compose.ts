/**
 * `environment/docker-compose.yaml` of a Harbor task: `main` is the agent's sandbox, the others become its services. A key that
 * no list names is refused by file, service and key.
 */
import { dirname, join } from "node:path";
import { z } from "zod";
import type { Services } from "../../../base/schema/environment/services.ts";
import type { Environment } from "../../../base/schema/task.ts";
import { exists } from "../../host-path.ts";
import { readYaml } from "../../readers/read-yaml.ts";
import { parseTask, taskError } from "../../task-error.ts";
import { interpolate } from "./interpolate.ts";
import { MainConfig, refusedKeys, SidecarConfig } from "./service-config.ts";
import { healthcheckOf, toServices } from "./to-services.ts";

export const composeName = "docker-compose.yaml";

export type ComposeParts = {
  services: NonNullable<Environment["services"]>;
  env: Record<string, string>;
  healthcheck: Environment["healthcheck"];
};

const networkOf = z.strictObject({
  driver: z.literal("bridge").optional(),
  internal: z.boolean().optional(),
  attachable: z.boolean().optional(),
  name: z.string().optional(),
  external: z.literal(false, "a network of the task's own: others are not joined").optional(),
});

/** The file's own form; names of networks and volumes say nothing that is kept. */
const Compose = z.strictObject({
  version: z.unknown().optional(),
  name: z.unknown().optional(),
  services: z.record(z.string(), z.record(z.string(), z.unknown()).nullable()),
  networks: z.record(z.string(), networkOf.nullable()).nullable().default({}),
  volumes: z
    .record(z.string(), z.strictObject({ name: z.string().optional() }).nullable())
    .nullable()
    .default({}),
});

/** null: the task has no such file. `host`: the variables that the operator gives to tasks. Throws `task_invalid`. */
export async function readCompose(folder: string, host: Readonly<Record<string, string>>): Promise<ComposeParts | null> {
  const file = join(folder, composeName);
  if (!(await exists(file))) return null;
  const { own, services } = await readServices(file, { name: "main", schema: MainConfig, without: withoutHarbors }, host);
  return { services, env: own.environment, healthcheck: healthcheckOf(own.healthcheck) };
}

type RawService = Record<string, unknown>;

/** How a format writes the service that is the agent's sandbox. */
export type AgentService<Config extends MainConfig> = {
  name: string;
  schema: z.ZodObject & z.ZodType<Config>;
  /** The service without what the format's own template says in each file. */
  without(raw: RawService): RawService;
};

export async function readServices<Config extends MainConfig>(
  file: string,
  { name: agent, schema, without }: AgentService<Config>,
  host: Readonly<Record<string, string>>,
): Promise<{ own: Config; services: Services }> {
  const { services } = parseTask(Compose, await readYaml(file, { followsLinks: false, merge: true }), file);
  const named = Object.entries(services).map(([name, raw]) => ({ name, raw: raw ?? {} }));
  const raw = named.find(({ name }) => name === agent)?.raw ?? {};
  const own = configOf(schema, agent, without(raw), host, file);
  const others = named.filter(({ name }) => name !== agent);
  const sidecars = new Map(others.map((one) => [one.name, configOf(SidecarConfig, one.name, one.raw, host, file)]));
  return { own, services: await toServices({ folder: dirname(file), file, agent, main: own, sidecars }) };
}

function configOf<Config>(
  schema: z.ZodObject & z.ZodType<Config>,
  name: string,
  raw: RawService,
  host: Readonly<Record<string, string>>,
  file: string,
): Config {
  const field = `services.${name}`;
  const beyond = Object.keys(raw).find((key) => !Object.hasOwn(schema.shape, key));
  if (beyond !== undefined)
    throw taskError(file, `${field}.${beyond}`, `is ${JSON.stringify(raw[beyond])}: ${whyNot(name, beyond, schema)}`);
  const parsed = schema.safeParse(interpolate(raw, host, file, field));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw taskError(file, [field, ...(issue?.path ?? [])].join("."), issue?.message ?? "is wrong");
}

function whyNot(name: string, key: string, { shape }: z.ZodObject): string {
  const why = refusedKeys.get(key);
  if (why !== undefined) return why;
  if (name === "main") return "main is the agent's sandbox: write it into task.toml or the Dockerfile, or remove it";
  return `a service may have ${Object.keys(shape).sort().join(", ")}: remove it`;
}

const here = ['"."', '{"context":"."}', '{"context":".","dockerfile":"Dockerfile"}'];

/** What Harbor's own template says of main, and task.toml says here. */
const harbors: Record<string, (value: string) => boolean> = {
  build: (value) => here.includes(value.replace(`\${CONTEXT_DIR}`, ".")),
  image: (value) => value.startsWith(`"\${`),
  command: (value) => /^\[?"(?:sh","-c",")?(?:sleep(?: |",")infinity|tail(?: |",")-f(?: |",")\/dev\/null)"\]?$/.test(value),
  volumes: (value) => /^\[(?:"\$\{HOST_[A-Z_]+\}:[^"]*",?)*\]$/.test(value),
  deploy: (value) => !/\d/.test(value),
};

function withoutHarbors(main: Record<string, unknown>): Record<string, unknown> {
  const isOwn = ([key, value]: [string, unknown]) => !(Object.hasOwn(harbors, key) && harbors[key]?.(JSON.stringify(value)));
  return Object.fromEntries(Object.entries(main).filter(isOwn));
}
