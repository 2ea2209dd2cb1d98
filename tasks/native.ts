/**
 * Alidade's own form: a folder with `task.yaml`, a folder of such folders, a .yaml or .json file of one task, or a .jsonl
 * file or a list in .json of several. Host paths in it are relative to the file.
 *
 *     task_id: parse-duration
 *     instruction: |
 *       Fix parseDuration: …
 *     environment: { files: files, mounts: { /opt/alidade/node: alidade:node } }
 *     grader: { kind: tests, parser: node-test, command: [node, "{runner}", test], tests: tests, … }
 */
import { open, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { messageOf } from "../errors.ts";
import { readJson, tryJson } from "../schema/read-json.ts";
import { Task } from "../schema/task.ts";
import { exists, folderBelow } from "./host-path.ts";
import { loadEach } from "./load-each.ts";
import { readRows } from "./read-rows.ts";
import { resolveTask, type TaskPlace } from "./resolve-task.ts";
import { parseTask, taskError } from "./task-error.ts";
import type { LoadOptions, TaskFormat } from "./task-format.ts";

const fileName = "task.yaml";

export const native: TaskFormat = {
  name: "native",
  title: "a folder with task.yaml, a folder of such folders, one task as .yaml or .json, or several as .jsonl or a list in .json",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    if (found?.isDirectory()) return (await taskFiles(path)).length > 0;
    if (found === null || !/\.(?:ya?ml|jsonl?)$/.test(path)) return false;
    return (await holdsRows(path)) ? isTask(await firstRow(path)) : true;
  },

  async load(path, options) {
    const { only, graders } = options;
    const tasks = (await stat(path)).isDirectory()
      ? await loadEach(await taskFiles(path), readTask, options)
      : (await holdsRows(path))
        ? await rowsOf(path, options)
        : [await readTask(path)];
    const wanted = tasks.filter(({ task }) => only?.has(task.task_id) ?? true);
    return loadEach(wanted, ({ task, file, where }) => resolveTask(task, folderOf(file, where), graders), options);
  },
};

/** The folder's own task file, else those of its folders. */
async function taskFiles(folder: string): Promise<string[]> {
  if (await exists(join(folder, fileName))) return [join(folder, fileName)];
  const entries = await readdir(folder, { withFileTypes: true });
  const inside = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name, fileName));
  const found = await Promise.all(inside.map(exists));
  return inside.filter((_, index) => found[index]).sort();
}

/** Is it a file of several tasks or of SWE rows: one a line, or a list? */
async function holdsRows(path: string): Promise<boolean> {
  return path.endsWith(".jsonl") || (path.endsWith(".json") && /^\s*\[/.test(await readFile(path, "utf8")));
}

/** Rows of the sets that we know take some kilobytes. */
const headBytes = 1024 * 1024;

/** undefined: there is none, or it is no JSON. A .jsonl file is read to its end only where no row ends within its head. */
async function firstRow(path: string): Promise<unknown> {
  const lines = path.endsWith(".jsonl") ? await firstLines(path).catch(() => []) : [];
  for (const line of lines) {
    const value = tryJson(line);
    if (value !== undefined) return value;
  }
  const [first] = await readRows(path, { onLeftOut: () => undefined }).catch(() => []);
  return first?.value;
}

/** Those that end within the head of the file. */
async function firstLines(path: string): Promise<string[]> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(headBytes) });
  return buffer.toString("utf8", 0, bytesRead).split("\n").slice(0, -1);
}

/** Rows of the SWE sets have other columns. */
function isTask(row: unknown): row is { task_id: unknown; grader: unknown } {
  return row !== null && typeof row === "object" && Object.hasOwn(row, "task_id") && Object.hasOwn(row, "grader");
}

/** Beside a wanted task no other one is looked at. */
async function rowsOf(path: string, options: LoadOptions): Promise<Read[]> {
  const { only } = options;
  const rows = (await readRows(path, options)).filter(({ value }) => only?.has(idOf(value)) ?? true);
  return loadEach(rows, async ({ value, where }) => ({ task: parseTask(Task, value, where), file: path, where }), options);
}

function idOf(row: unknown): string {
  return isTask(row) && typeof row.task_id === "string" ? row.task_id : "";
}

/** `where`: the file, and the line or row in it, for errors. */
type Read = { task: Task; file: string; where: string };

async function readTask(file: string): Promise<Read> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw taskError(file, "the file", `cannot be read (${messageOf(error)})`);
  });
  return { task: parseTask(Task, readDocument(text, file), file), file, where: file };
}

function readDocument(text: string, file: string): unknown {
  try {
    return file.endsWith(".json") ? readJson(text) : parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw taskError(file, "the file", `is not ${file.endsWith(".json") ? "JSON" : "YAML"}: ${messageOf(error)}`);
  }
}

function folderOf(file: string, where: string): TaskPlace {
  return { name: where, folder: (path, field) => folderBelow(dirname(file), path, where, field) };
}
