/** A task folder's `task.toml`, checked. */
import { join } from "node:path";
import { parse } from "smol-toml";
import { messageOf } from "../../base/errors.ts";
import { readText } from "../readers/read-text.ts";
import { parseTask, taskError } from "../task-error.ts";
import { TaskConfig } from "./task-config.ts";

export const configName = "task.toml";
/** The largest of the public sets has a few kilobytes. */
const mostBytes = 1024 * 1024;

/** Fields that Harbor does not know, which it ignores: said once, for one of them may be a field that was meant. */
export async function readConfig(folder: string, say: (line: string) => void): Promise<TaskConfig> {
  const file = join(folder, configName);
  const value = renamed(parsed(await textOf(file), file));
  const unknown = unknownKeys(value);
  for (const path of unknown) remove(value, path);
  const config = parseTask(TaskConfig, value, file);
  if (unknown.length > 0)
    say(`${file}: ${unknown.map((path) => path.join(".")).join(", ")}: no field of Harbor's, and ignored as by Harbor`);
  return config;
}

export function textOf(file: string): Promise<string> {
  return readText(file, { mostBytes, followsLinks: false });
}

type Table = Record<string, unknown>;

function parsed(text: string, file: string): Table {
  try {
    return parse(text) as Table;
  } catch (error) {
    const [first = ""] = messageOf(error).split("\n");
    const { line, column } = error as { line?: number; column?: number };
    throw taskError(file, line === undefined ? "the file" : `line ${line}, column ${column}`, `is not TOML: ${first}`);
  }
}

/** The oldest tasks say `version`. */
function renamed(value: Table): Table {
  const { version, ...others } = value;
  return version === undefined ? value : { schema_version: version, ...others };
}

function unknownKeys(value: Table): string[][] {
  const issues = TaskConfig.safeParse(value).error?.issues ?? [];
  return issues.flatMap((issue) => {
    const path = issue.path.map(String);
    // Our own words have one meaning: a mistake in them is no field of another format.
    return issue.code === "unrecognized_keys" && path[0] !== "metadata" ? issue.keys.map((key) => [...path, key]) : [];
  });
}

function remove(value: Table, path: string[]): void {
  const parent = path.slice(0, -1).reduce<unknown>((at, key) => (at as Table | undefined)?.[key], value);
  if (parent !== null && typeof parent === "object") Reflect.deleteProperty(parent, path.at(-1) ?? "");
}

/** Data sets mark their files so that they are found in training data; an agent is not shown that, as in Harbor. */
const canary = /^(?:<!--.*canary.*-->|#.*canary.*)$/i;

export function withoutCanary(text: string): string {
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length && canary.test((lines[at] ?? "").trim())) at += 1;
  while (at < lines.length && (lines[at] ?? "").trim() === "") at += 1;
  return lines.slice(at).join("\n");
}
