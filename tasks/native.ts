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
import { lstat, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf } from "../base/errors.ts";
import { readJson } from "../base/schema/read-json.ts";
import { Task } from "../base/schema/task.ts";
import { exists, folderBelow } from "./host-path.ts";
import { loadEach } from "./load-each.ts";
import { firstRow, holdsList, readRows } from "./readers/read-rows.ts";
import { readText } from "./readers/read-text.ts";
import { readYaml } from "./readers/read-yaml.ts";
import { resolveTask, type TaskPlace } from "./resolve-task.ts";
import { parseTask, taskError } from "./task-error.ts";
import type { LoadOptions, TaskFormat } from "./task-format.ts";
import { terminalBenchFolders } from "./terminal-bench/task-folders.ts";

const fileName = "task.yaml";
/** A patch or a script of a task may stand in it; files are for more. */
const mostJsonBytes = 16 * 1024 * 1024;

export const native: TaskFormat = {
  name: "native",
  title: "a folder with task.yaml, a folder of such folders, one task as .yaml or .json, or several as .jsonl or a list in .json",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    // Terminal-Bench's files have the same name.
    if (found?.isDirectory()) return (await taskFiles(path)).length > 0 && (await terminalBenchFolders(path)).length === 0;
    // A file `….set.yaml` names a published set of tasks with tools.
    if (found === null || !/(?<!\.set)\.(?:ya?ml|jsonl?)$/.test(path)) return false;
    return (await holdsRows(path)) ? isTask(await firstRow(path)) : true;
  },

  async load(path, options) {
    const { only, graders } = options;
    const isFolder = (await stat(path)).isDirectory();
    const tasks =
      !isFolder && (await holdsRows(path))
        ? await rowsOf(path, options)
        : await loadEach(isFolder ? await taskFiles(path) : [path], (file) => file, readTask, options);
    const wanted = tasks.filter(({ task }) => only?.has(task.task_id) ?? true);
    return loadEach(
      wanted,
      ({ where }) => where,
      ({ task, file, where }) => resolveTask(task, folderOf(file, where), graders),
      options,
    );
  },
};

/** The folder's own task file, else those of its folders. */
async function taskFiles(folder: string): Promise<string[]> {
  if (await exists(join(folder, fileName))) return [join(folder, fileName)];
  const entries = await readdir(folder, { withFileTypes: true });
  const inside = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name, fileName));
  // A link that leads nowhere is named, and not passed by.
  const found = await Promise.all(inside.map((file) => lstat(file).catch(() => null)));
  return inside.filter((_, index) => found[index] !== null).sort();
}

/** Is it a file of several tasks or of SWE rows: one a line, or a list? */
async function holdsRows(path: string): Promise<boolean> {
  return path.endsWith(".jsonl") || (path.endsWith(".json") && (await holdsList(path)));
}

/** Rows of the SWE sets have other columns. */
function isTask(row: unknown): row is { task_id: unknown; grader: unknown } {
  return row !== null && typeof row === "object" && Object.hasOwn(row, "task_id") && Object.hasOwn(row, "grader");
}

/** Beside a wanted task no other one is looked at. */
async function rowsOf(path: string, options: LoadOptions): Promise<Read[]> {
  const { only } = options;
  const rows = (await readRows(path, options)).filter(({ value }) => only?.has(idOf(value)) ?? true);
  return loadEach(
    rows,
    ({ where }) => where,
    async ({ value, where }) => ({ task: parseTask(Task, value, where), file: path, where }),
    options,
  );
}

function idOf(row: unknown): string {
  return isTask(row) && typeof row.task_id === "string" ? row.task_id : "";
}

/** `where`: the file, and the line or row in it, for errors. */
type Read = { task: Task; file: string; where: string };

async function readTask(file: string): Promise<Read> {
  const value = file.endsWith(".json") ? await readDocument(file) : await readYaml(file, { followsLinks: true });
  return { task: parseTask(Task, value, file), file, where: file };
}

async function readDocument(file: string): Promise<unknown> {
  const text = await readText(file, { mostBytes: mostJsonBytes, followsLinks: true });
  try {
    return readJson(text);
  } catch (error) {
    throw taskError(file, "the file", `is not JSON: ${messageOf(error)}`);
  }
}

function folderOf(file: string, where: string): TaskPlace {
  return { name: where, folder: (path, field) => folderBelow(dirname(file), path, where, field) };
}
