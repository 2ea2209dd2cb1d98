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
import { z } from "zod";
import { AlidadeError, messageOf } from "../errors.ts";
import type { Grader } from "../graders/grader.ts";
import { graderOf, specOfGrader } from "../graders/index.ts";
import { nodeInside } from "../sandboxes/node-mount.ts";
import { readJson } from "../schema/read-json.ts";
import { type Environment, type GraderSpec, Task } from "../schema/task.ts";
import { exists, folderBelow } from "./host-path.ts";
import { loadEach } from "./load-each.ts";
import { nodeWord, withNode } from "./node-environment.ts";
import { issuesError, parseTask, taskError } from "./task-error.ts";
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
    return loadEach(wanted, (read) => resolvePaths(read, graders), options);
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

async function resolvePaths({ task, file }: Read, graders?: readonly Grader[]): Promise<Task> {
  const folder = (path: string | null, field: string) => (path === null ? null : folderBelow(dirname(file), path, file, field));
  return {
    ...task,
    environment: await resolveEnvironment(task.environment, file),
    grader: await resolveGrader(task.grader, file, graders),
    gold_files: await folder(task.gold_files, "gold_files"),
  };
}

async function resolveEnvironment(environment: Environment, file: string): Promise<Environment> {
  const own = Object.entries(environment.mounts).filter(([, path]) => path !== nodeWord);
  for (const [inside, path] of Object.entries(environment.mounts)) {
    if (path === nodeWord && inside !== nodeInside) {
      throw taskError(file, `environment.mounts.${inside}`, `${nodeWord} is mounted at ${nodeInside} and nowhere else`);
    }
    if (!inside.startsWith("/")) throw taskError(file, `environment.mounts.${inside}`, "a mount's path inside begins with /");
  }
  const mounts = await Promise.all(
    own.map(async ([inside, path]) => [inside, await folderBelow(dirname(file), path, file, `environment.mounts.${inside}`)] as const),
  );
  const files = environment.files === null ? null : await folderBelow(dirname(file), environment.files, file, "environment.files");
  const build = environment.build && {
    ...environment.build,
    context: await folderBelow(dirname(file), environment.build.context, file, "environment.build.context"),
  };
  const resolved = { ...environment, files, build, mounts: Object.fromEntries(mounts) };
  return own.length < Object.keys(environment.mounts).length ? withNode(resolved) : resolved;
}

/** Parts of parts of parts: deeper is no grading that a person can follow. */
const deepestPart = 3;

async function resolveGrader(
  grader: GraderSpec,
  file: string,
  known?: readonly Grader[],
  within = "grader",
  depth = 0,
): Promise<GraderSpec> {
  const spec = readSpec(grader, file, within, known);
  const { folders = [], parts } = graderOf(spec, known);
  const resolved: GraderSpec = { ...spec };
  for (const field of folders) {
    const path = spec[field];
    if (typeof path === "string") resolved[field] = await folderBelow(dirname(file), path, file, `${within}.${field}`);
  }
  if (parts === undefined) return resolved;
  if (depth === deepestPart) throw taskError(file, within, `graders stand in one another more than ${deepestPart} deep`);
  const own: GraderSpec[] = [];
  for (const [index, part] of parts.of(resolved).entries())
    own.push(await resolveGrader(part, file, known, `${within}.parts.${index}.grader`, depth + 1));
  return parts.with(resolved, own);
}

function readSpec(grader: GraderSpec, file: string, within: string, known?: readonly Grader[]): GraderSpec {
  try {
    return specOfGrader(grader, known);
  } catch (error) {
    if (error instanceof AlidadeError) throw taskError(file, within === "grader" ? (error.param ?? within) : within, error.message);
    const issues = error instanceof z.ZodError ? error.issues : [];
    throw issuesError(issues, file, within) ?? taskError(file, within, messageOf(error));
  }
}
