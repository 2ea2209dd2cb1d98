/**
 * `environment/docker-compose.yaml` of a Harbor task: `main` is the agent's sandbox, the others become its services. A key that
 * no list names is refused by file, service and key.
 */
import { join } from "node:path";
import { z } from "zod";
import type { Environment } from "../../../schema/task.ts";
import { exists } from "../../host-path.ts";
import { readYaml } from "../../read-yaml.ts";
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
  const { services } = parseTask(Compose, await readYaml(file, { followsLinks: false, merge: true }), file);
  const { main: own, ...others } = services;
  const main = configOf(MainConfig, "main", withoutHarbors(own ?? {}), host, file);
  const sidecars = Object.entries(others).map(([name, raw]) => [name, configOf(SidecarConfig, name, raw ?? {}, host, file)] as const);
  const made = await toServices({ folder, file, main, sidecars: new Map(sidecars) });
  return { services: made, env: main.environment, healthcheck: healthcheckOf(main.healthcheck) };
}

function configOf<T extends z.ZodRawShape>(
  schema: z.ZodObject<T>,
  name: string,
  raw: Record<string, unknown>,
  host: Readonly<Record<string, string>>,
  file: string,
): z.infer<z.ZodObject<T>> {
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
