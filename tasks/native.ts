/**
 * Alidade's own form: a folder with `task.yaml`, a folder of such folders, or a .yaml or .json file of one task. Host
 * paths in it are relative to the file.
 *
 *     task_id: parse-duration
 *     instruction: |
 *       Fix parseDuration: …
 *     environment: { files: files, mounts: { /opt/alidade/node: alidade:node } }
 *     grader: { kind: tests, parser: node-test, command: [node, "{runner}", test], tests: tests, … }
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse } from "yaml";
import { messageOf } from "../errors.ts";
import { readJson } from "../schema/read-json.ts";
import { Task } from "../schema/task.ts";
import { exists, folderBelow } from "./host-path.ts";
import { loadEach } from "./load-each.ts";
import { resolveTask, type TaskPlace } from "./resolve-task.ts";
import { parseTask, taskError } from "./task-error.ts";
import type { TaskFormat } from "./task-format.ts";

const fileName = "task.yaml";

export const native: TaskFormat = {
  name: "native",
  title: "a folder with task.yaml, a folder of such folders, or one task as .yaml or .json",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    if (found?.isDirectory()) return (await taskFiles(path)).length > 0;
    return found !== null && /\.(?:ya?ml|json)$/.test(path) && !(await isList(path));
  },

  async load(path, options) {
    const { only, graders } = options;
    const files = (await stat(path)).isDirectory() ? await taskFiles(path) : [path];
    const tasks = await loadEach(files, readTask, options);
    const wanted = tasks.filter(({ task }) => only?.has(task.task_id) ?? true);
    return loadEach(wanted, ({ task, file }) => resolveTask(task, folderOf(file), graders), options);
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

/** A .json file that begins as a list holds SWE rows. */
async function isList(path: string): Promise<boolean> {
  return path.endsWith(".json") && /^\s*\[/.test(await readFile(path, "utf8"));
}

type Read = { task: Task; file: string };

async function readTask(file: string): Promise<Read> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw taskError(file, "the file", `cannot be read (${messageOf(error)})`);
  });
  return { task: parseTask(Task, readDocument(text, file), file), file };
}

function readDocument(text: string, file: string): unknown {
  try {
    return file.endsWith(".json") ? readJson(text) : parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw taskError(file, "the file", `is not ${file.endsWith(".json") ? "JSON" : "YAML"}: ${messageOf(error)}`);
  }
}

function folderOf(file: string): TaskPlace {
  return { name: file, folder: (path, field) => folderBelow(dirname(file), path, file, field) };
}
