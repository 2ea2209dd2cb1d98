/** Tasks under one name: what a data set of prompts and a run say of where their tasks are from. */
import { readFile, stat } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import { hashTree, isBelow, readFolder } from "../files/file-tree.ts";
import type { Grader } from "../graders/grader.ts";
import { environmentsOf, withParts } from "../graders/index.ts";
import { cacheRoot } from "../host/cache-folder.ts";
import { nodeInside } from "../sandboxes/node-mount.ts";
import { hashOf } from "../schema/ids.ts";
import type { Task } from "../schema/task.ts";
import { nodeWord } from "./node-environment.ts";
import { parseTask, taskError } from "./task-error.ts";

export type TaskSet = {
  id: string;
  /** null: nothing says one. */
  version: string | null;
  /** The contents of its tasks, in any order and in any place, give the same hash. */
  hash: string;
  tasks: HashedTask[];
};
export type HashedTask = { task: Task; hash: string };

const About = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][\w./-]{0,99}$/, "is no name: letters, digits, dots, dashes, underscores and slashes are wanted")
    .optional(),
  version: z.string().min(1).max(100).optional(),
});

const aboutFile = "task-set.yaml";

/** `path`: the file or folder that they were loaded from. A folder's `task-set.yaml` gives it an id and a version. */
export async function taskSetOf(path: string, tasks: Task[], graders?: readonly Grader[]): Promise<TaskSet> {
  const { id = stemOf(path), version = null } = await aboutSet(path);
  const hashed = await hashedTasks(tasks, graders);
  return { id, version, hash: hashOf(hashed.map(({ hash }) => hash).sort()).slice(0, 16), tasks: hashed };
}

/** Each with the hash of its content, which is the same on every machine. */
export function hashedTasks(tasks: readonly Task[], graders?: readonly Grader[]): Promise<HashedTask[]> {
  return Promise.all(tasks.map(async (task) => ({ task, hash: await contentHash(task, graders) })));
}

function stemOf(path: string): string {
  return basename(path).replace(/\.(?:jsonl|json|parquet|ya?ml)$/, "");
}

async function aboutSet(path: string): Promise<z.infer<typeof About>> {
  const file = join(path, aboutFile);
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const text = isFolder ? await readFile(file, "utf8").catch(() => null) : null;
  return text === null ? {} : parseTask(About, documentOf(text, file), file);
}

function documentOf(text: string, file: string): unknown {
  try {
    return parse(text, { maxAliasCount: 100 });
  } catch (error) {
    throw taskError(file, "the file", `is not YAML: ${messageOf(error)}`);
  }
}

/** The same on every machine: folders of the host count by what is in them. */
export async function contentHash(task: Task, graders?: readonly Grader[]): Promise<string> {
  const hashes = new Map<unknown, unknown>();
  for (const folder of foldersOf(task, graders)) hashes.set(folder, await folderHash(folder));
  const node = task.environment.mounts[nodeInside];
  if (node !== undefined) hashes.set(node, nodeWord);
  return hashOf(replaced(task, hashes)).slice(0, 16);
}

/** All that a task names on the host. */
function foldersOf(task: Task, graders?: readonly Grader[]): Set<string> {
  const { gold_files, gold_script, steps = [] } = task;
  const places = environmentsOf([task], graders).flatMap(({ environment: { files, mounts, build } }) => {
    const { [nodeInside]: _, ...others } = mounts;
    return [files, build?.context, ...Object.values(others)];
  });
  const judged = withParts(task.grader, graders).flatMap(({ grader: { folders = [] }, spec }) => folders.map((field) => spec[field]));
  const ofSteps = steps.flatMap((step) => [step.files, step.gold_script?.files]);
  const named = [gold_files, gold_script?.files, ...judged, ...ofSteps, ...places];
  return new Set(named.filter((path) => typeof path === "string"));
}

function replaced(value: unknown, by: ReadonlyMap<unknown, unknown>): unknown {
  if (Array.isArray(value)) return value.map((one) => replaced(one, by));
  if (value === null || typeof value !== "object") return by.has(value) ? by.get(value) : value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaced(one, by)]));
}

/** Folders of the cache are named after what is in them. */
async function folderHash(path: unknown): Promise<unknown> {
  if (typeof path !== "string") return path;
  const cache = cacheRoot();
  return isBelow(path, cache) ? relative(cache, path) : hashTree(await readFolder(path));
}
