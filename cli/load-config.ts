/** The configuration of a command, out of a YAML file, the environment over it and flags over both. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { z } from "zod";
import { AlidadeError, messageOf } from "../base/errors.ts";
import { fromFolder, isFile } from "../base/host/plug-ins.ts";
import { complaintOf } from "../base/schema/complaints/complaint.ts";
import { didYouMean } from "../base/schema/complaints/nearest-word.ts";
import { isSetId } from "../base/schema/ids.ts";
import { harnessNamed } from "../harnesses/index.ts";
import { Config, configSchema } from "./config.ts";

/**
 * The configuration from a file (or none), the environment and overrides (flags; undefined ones do not count).
 * Throws `config_invalid` naming the key and the value, and `harness_unknown` with the names that there are.
 */
export async function loadConfig(options: ConfigSources): Promise<Config> {
  return (await loadGivenConfig(options)).config;
}

export type ConfigSources = {
  file?: string;
  /** Defaults of a command that replace the schema's own. */
  defaults?: Record<string, unknown>;
  env?: Record<string, string | undefined>;
  overrides?: Record<string, unknown>;
};

/** With the keys that the sources gave: for the others the configuration has the defaults of the schema. Throws as `loadConfig`. */
export async function loadGivenConfig(options: ConfigSources): Promise<{ config: Config; given: string[] }> {
  const file = options.file === undefined ? {} : withFilesFrom(dirname(resolve(options.file)), await readConfigFile(options.file));
  const said = [fromEnvironment(options.env ?? process.env), options.overrides ?? {}];
  const layers = [file, ...said.map((layer) => withFilesFrom(process.cwd(), layer))];
  const merged = withSharedEngine(layers.reduce(mergeLayer, options.defaults ?? {}));
  const result = Config.safeParse(merged);
  if (result.success) return { config: result.data, given: Object.keys(merged).filter((key) => isGiven(merged[key])) };
  if (typeof merged.harness === "string" && !isFile(merged.harness)) harnessNamed(merged.harness);
  throw invalid(options.file ?? "the configuration", result.error, merged);
}

/** Flags that were not given are undefined, also inside of the object that they are keys of. */
function isGiven(value: unknown): boolean {
  return isPlain(value) ? Object.values(value).some(isGiven) : value !== undefined;
}

async function readConfigFile(file: string): Promise<Record<string, unknown>> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new AlidadeError("config_invalid", `cannot read the run file ${file}: ${messageOf(error)}`, { cause: error, param: "config" });
  });
  const { parse } = await import("yaml");
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 50 });
  } catch (error) {
    throw new AlidadeError("config_invalid", `${file} is no YAML: ${messageOf(error)}`, { cause: error, param: "config" });
  }
  if (value === null || value === undefined) return {};
  if (!isPlain(value)) throw new AlidadeError("config_invalid", `${file} holds no mapping of keys to values`, { param: "config" });
  if (isPlain(value.engine) && value.engine.url !== undefined && value.engines !== undefined)
    throw new AlidadeError("config_invalid", `${file} has engine.url and engines: give the one engine, or the list`, { param: "engines" });
  return value;
}

/** `ALIDADE_ENGINE_URL` is `engine.url`, `ALIDADE_SAMPLES` is `samples`: every scalar has such a name. */
function fromEnvironment(env: Record<string, string | undefined>): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const { path, type } of scalars()) {
    const text = env[`ALIDADE_${path.join("_").toUpperCase()}`];
    if (text === undefined || text === "") continue;
    let at = out;
    for (const key of path.slice(0, -1)) {
      at[key] ??= {};
      at = at[key] as Record<string, unknown>;
    }
    at[path.at(-1) as string] = type === "string" ? text : toScalar(text);
  }
  return out;
}

/** Paths of the keys that one environment variable can hold. */
export function scalarPaths(): string[][] {
  return scalars().map(({ path }) => path);
}

function scalars(): { path: string[]; type: string }[] {
  const found: { path: string[]; type: string }[] = [];
  const walk = (schema: unknown, path: string[]): void => {
    if (!isPlain(schema)) return;
    const properties = schema.properties;
    if (isPlain(properties)) for (const [key, inner] of Object.entries(properties)) walk(inner, [...path, key]);
    else if (
      ["string", "number", "integer", "boolean"].includes(String(schema.type)) ||
      schema.enum ||
      (path[0] === "harness" && path.length === 1)
    )
      found.push({ path, type: typeof schema.type === "string" ? schema.type : "string" });
  };
  walk(configSchema(), []);
  return found;
}

/** A number or a boolean; any other text stays one, and the schema names it. */
function toScalar(text: string): unknown {
  if (text === "true" || text === "false") return text === "true";
  return text.trim() === "" || Number.isNaN(Number(text)) ? text : Number(text);
}

/** Files of plug-ins and of TLS that a layer names are relative to its folder, wherever they are loaded later. */
function withFilesFrom(folder: string, layer: Record<string, unknown>): Record<string, unknown> {
  const absolute = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(absolute);
    return typeof value === "string" ? fromFolder(value, folder) : value;
  };
  const pathFrom = (path: unknown): unknown => (typeof path === "string" && path !== "" ? resolve(folder, path) : path);
  // The id of a set stays one.
  const runFrom = (run: unknown): unknown => (typeof run === "string" && isSetId(run) ? run : pathFrom(run));
  const withKind = (engine: unknown): unknown =>
    isPlain(engine) && "kind" in engine ? { ...engine, kind: absolute(engine.kind) } : engine;
  const { branching, choose, engine, engines, harness, tls, repositories } = layer;
  const own = ["harness", "sandbox", "graders", "task_formats", "allocation_policies"].filter((key) => Object.hasOwn(layer, key));
  return {
    ...layer,
    ...Object.fromEntries(own.map((key) => [key, absolute(layer[key])])),
    ...(repositories !== undefined && { repositories: pathFrom(repositories) }),
    ...(isPlain(branching) && "policy" in branching && { branching: { ...branching, policy: absolute(branching.policy) } }),
    ...(isPlain(choose) && Array.isArray(choose.of) && { choose: { ...choose, of: choose.of.map(runFrom) } }),
    ...(isPlain(harness) && {
      harness: { ...harness, folder: typeof harness.folder === "string" ? resolve(folder, harness.folder) : folder },
    }),
    ...(isPlain(tls) && { tls: Object.fromEntries(Object.entries(tls).map(([name, path]) => [name, pathFrom(path)])) }),
    ...(engine === undefined ? {} : { engine: withKind(engine) }),
    ...(engines === undefined ? {} : { engines: Array.isArray(engines) ? engines.map(withKind) : engines }),
  };
}

/** A flag or variable for the one engine replaces a file's list of engines. */
function mergeLayer(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const { engines: _engines, ...withoutList } = base;
  return merge(isPlain(over.engine) && over.engine.url !== undefined ? withoutList : base, over);
}

/** Fields of `engine` apply to each entry of `engines` that has no own value. */
function withSharedEngine(config: Record<string, unknown>): Record<string, unknown> {
  const { engine, engines } = config;
  if (!isPlain(engine) || !Array.isArray(engines)) return config;
  const { kind, api_key_env, calls_at_once, resample_lost } = engine;
  const shared = { kind, api_key_env, calls_at_once, resample_lost };
  return { ...config, engines: engines.map((each: unknown) => (isPlain(each) ? merge(shared, each) : each)) };
}

function merge(base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> {
  const out = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const under = out[key];
    out[key] = isPlain(under) && isPlain(value) && key !== "sampling" ? merge(under, value) : value;
  }
  return out;
}

function invalid(where: string, error: z.ZodError, value: unknown): AlidadeError {
  const { path, given, message, unknownKey } = complaintOf(error, value);
  const key = path.join(".");
  const text =
    unknownKey === null
      ? `${key} is ${given}: ${message}`
      : `"${key}" is no key of the configuration${didYouMean(unknownKey, keysBeside(path))}; \`alidade config --schema\` lists them`;
  return new AlidadeError("config_invalid", `${where}: ${text}`, { param: key });
}

/** The keys of the object in which the last of the path stands. */
function keysBeside(path: string[]): string[] {
  const at = path.slice(0, -1).reduce<unknown>(inside, configSchema());
  return formsOf(at).flatMap((form) => (isPlain(form.properties) ? Object.keys(form.properties) : []));
}

function inside(schema: unknown, key: string): unknown {
  const forms = formsOf(schema);
  const properties = forms.flatMap((form) => (isPlain(form.properties) && Object.hasOwn(form.properties, key) ? form.properties[key] : []));
  return properties[0] ?? forms.flatMap((form) => form.items ?? [])[0];
}

/** An object's schema, or those of its forms. */
function formsOf(schema: unknown): Record<string, unknown>[] {
  if (!isPlain(schema)) return [];
  return [schema, ...(Array.isArray(schema.anyOf) ? schema.anyOf.filter(isPlain) : [])];
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
