/**
 * Harbor runs all services of a task where its agent reaches them. Those that hold its servers of tools decide the reward, so
 * they stand apart here, unless a script of the task speaks to them itself.
 */
import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import { isBelow, listFolder } from "../../base/files/file-tree.ts";
import type { Services } from "../../base/schema/environment/services.ts";
import type { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { exists } from "../host-path.ts";
import { type ComposeParts, composeName } from "./compose/read-compose.ts";
import { configName, textOf } from "./read-config.ts";
import type { TaskConfig } from "./task-config.ts";

type ReadFolder = { folder: string; config: TaskConfig; compose: ComposeParts; tools: readonly ToolServer[] };

/** What speaks to a service: the place of the text, and the service. */
type Use = { place: string; service: string };

/**
 * Returns the services of a task. All of them go apart together, because they may speak to each other: the two networks do
 * not reach one another.
 */
export async function putApart(read: ReadFolder, say: (line: string) => void): Promise<Services> {
  const { services } = read.compose;
  const named = [...new Set(read.tools.map(({ service }) => service))].filter((name) => Object.hasOwn(services, name));
  if (named.length === 0) return services;
  const use = await findUse(read, named);
  if (use === null) return Object.fromEntries(Object.entries(services).map(([name, one]) => [name, { ...one, network: "apart" as const }]));
  const file = join(read.folder, configName);
  say(
    `${file}: environment.mcp_servers: ${use.place} speaks to the service ${use.service}, so all services stay in the agent's network, where its commands reach them too`,
  );
  return services;
}

async function findUse({ config, compose, tools, ...read }: ReadFolder, named: readonly string[]): Promise<Use | null> {
  // Folders of builds are known by where they really lie.
  const folder = await realpath(read.folder);
  const services = Object.entries(compose.services).map(([name, { aliases }]) => ({ name, names: [name, ...aliases] }));
  const ports = tools.flatMap(({ port }) => port ?? []);
  const uses = ({ place, text }: TaskText): Use | null => {
    const service = services.find(({ names }) => names.some((one) => isNamed(text, one)));
    if (service) return { place, service: service.name };
    return ports.some((port) => isNumberIn(text, port)) ? { place, service: named[0] ?? "" } : null;
  };
  for await (const text of scriptsOf(folder, config, compose)) {
    if (text === null) return { place: "a folder too large to be read, which perhaps", service: named[0] ?? "" };
    const use = uses(text);
    if (use) return use;
  }
  // An instruction names servers of tools in words; what else it names is for the agent's commands.
  for await (const { place, text } of instructionsOf(folder, config)) {
    const others = withoutEndpoints(text, services, tools);
    const service = services.find(({ name, names }) =>
      names.some((one) => (named.includes(name) ? isAddressed(others, one) : isNamed(others, one))),
    );
    if (service) return { place, service: service.name };
  }
  return null;
}

type TaskText = { place: string; text: string };

/** Yields what runs in the agent's sandbox or beside the tests. null: there is more than is read. */
async function* scriptsOf(
  folder: string,
  config: TaskConfig,
  { services, env, healthcheck }: ComposeParts,
): AsyncGenerator<TaskText | null> {
  const { mcp_servers: _, ...environment } = config.environment;
  yield { place: configName, text: wordsIn({ ...config, environment }) };
  yield { place: `main of ${composeName}`, text: wordsIn({ env, healthcheck }) };
  const contexts = Object.values(services).flatMap(({ build }) => (build ? [build.context] : []));
  const environmentFolder = join(folder, "environment");
  // Reads the folder of the agent's image in any case. A service may be built from the same folder.
  const ofServices = contexts.filter((context) => context !== environmentFolder);
  for (const place of ["environment", "tests", "solution", "steps"]) {
    if (!(await exists(join(folder, place)))) continue;
    const entries = await listFolder(join(folder, place), { links: "kept" }).catch(() => null);
    if (entries === null) return yield null;
    for (const { path, size, isLink } of entries) {
      const [file, named] = [join(folder, place, path), `${place}/${path}`];
      const isOfService = ofServices.some((context) => isBelow(file, context));
      if (isLink || size > mostScriptBytes || isReadApart(named) || isOfService) continue;
      const text = await readFile(file, "utf8");
      if (!text.includes("\0")) yield { place: named, text };
    }
  }
}

/** A larger file is data. */
const mostScriptBytes = 1024 * 1024;

/** The compose file speaks of all services, and instructions are read on their own. */
function isReadApart(path: string): boolean {
  return path === `environment/${composeName}` || /^steps\/[^/]+\/instruction\.md$/.test(path);
}

async function* instructionsOf(folder: string, { steps }: TaskConfig): AsyncGenerator<TaskText> {
  const places = steps?.length ? steps.map(({ name }) => `steps/${name}/instruction.md`) : ["instruction.md"];
  for (const place of places) if (await exists(join(folder, place))) yield { place, text: await textOf(join(folder, place)) };
}

/** All strings of a value, a line each. Names of fields are no words of a script. */
function wordsIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  return Object.values(value).map(wordsIn).join("\n");
}

/** The name as a word: not as a part of a path, of a file's name or of a longer name. */
function isNamed(text: string, name: string): boolean {
  return isAddressed(text, name) || new RegExp(`(?<![\\w./-])${escaped(name)}(?![\\w./-])`, "i").test(text);
}

/** The name as a host: in a URL, or before a port. */
function isAddressed(text: string, name: string): boolean {
  const host = escaped(name);
  return new RegExp(`(?<=//|@)${host}(?![\\w.-]*\\w)|(?<![\\w./-])${host}:\\d`, "i").test(text);
}

function isNumberIn(text: string, port: number): boolean {
  return new RegExp(`(?<![\\d.])${port}(?!\\d|\\.\\d)`).test(text);
}

/** Names of services have letters, digits, dots, dashes and underscores. */
function escaped(name: string): string {
  return name.replaceAll(".", "\\.");
}

function withoutEndpoints(
  text: string,
  services: readonly { name: string; names: readonly string[] }[],
  tools: readonly ToolServer[],
): string {
  const hosts = tools.flatMap(({ service, port }) => {
    const names = services.find(({ name }) => name === service)?.names ?? [];
    return port === undefined ? [] : names.map((name) => `${escaped(name)}${port === 80 ? "(?::80)?" : `:${port}`}`);
  });
  return hosts.reduce((left, host) => left.replace(new RegExp(`(?<=//)${host}(?![\\w.:-])`, "gi"), ""), text);
}
