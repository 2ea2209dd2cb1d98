/** Tasks under one name: what a data set of prompts and a run say of where their tasks are from. */
import { basename, join, relative } from "node:path";
import { z } from "zod";
import { hashTree, readFolder } from "../../base/files/file-tree.ts";
import { cacheRoot } from "../../base/host/cache-folder.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Grader } from "../../graders/index.ts";
import { nodeInside } from "../../sandboxes/index.ts";
import { exists } from "../host-path.ts";
import { loadEach } from "../load-each.ts";
import { nodeWord } from "../node-environment.ts";
import { readYaml } from "../readers/read-yaml.ts";
import { parseTask } from "../task-error.ts";
import { foldersOf, isCached } from "../task-folders.ts";
import type { LoadOptions } from "../task-format.ts";

export type TaskSet = {
  id: string;
  /** null: nothing says one. */
  version: string | null;
  /** The contents of its tasks, in any order and in any place, give the same hash. */
  hash: string;
  tasks: HashedTask[];
};
export type HashedTask = { task: Task; hash: string };

/** Gets the error of each task that is left out; without it the first one is thrown. */
type Leaving = Pick<LoadOptions, "onLeftOut">;

const About = z.strictObject({
  id: z
    .string()
    .regex(/^[A-Za-z0-9][\w./-]{0,99}$/, "is no name: letters, digits, dots, dashes, underscores and slashes are wanted")
    .optional(),
  version: z.string().min(1).max(100).optional(),
});

const aboutFile = "task-set.yaml";

/** `path`: the file or folder that they were loaded from. A folder's `task-set.yaml` gives it an id and a version. */
export async function taskSetOf(path: string, tasks: Task[], graders?: readonly Grader[], options: Leaving = {}): Promise<TaskSet> {
  const { id = stemOf(path), version = null } = await aboutSet(path);
  const hashed = await hashedTasks(tasks, graders, options);
  return { id, version, hash: hashOf(hashed.map(({ hash }) => hash).sort()).slice(0, 16), tasks: hashed };
}

/** Each with the hash of its content, which is the same on every machine. One that has none is left out as `loadEach` does. */
export function hashedTasks(tasks: readonly Task[], graders?: readonly Grader[], options: Leaving = {}): Promise<HashedTask[]> {
  return loadEach(
    tasks,
    ({ task_id }) => `task ${task_id}`,
    async (task) => ({ task, hash: await contentHash(task, graders) }),
    options,
  );
}

function stemOf(path: string): string {
  return basename(path).replace(/\.(?:jsonl|json|parquet|ya?ml)$/, "");
}

async function aboutSet(path: string): Promise<z.infer<typeof About>> {
  const file = join(path, aboutFile);
  if (!(await exists(file))) return {};
  return parseTask(About, await readYaml(file, { followsLinks: true }), file);
}

/** The same on every machine: folders of the host count by what is in them. */
export async function contentHash(task: Task, graders?: readonly Grader[]): Promise<string> {
  const hashes = new Map<unknown, unknown>();
  const { read, given } = foldersOf(task, graders);
  for (const folder of given) hashes.set(folder, await folderHash(folder, "kept"));
  for (const folder of read) hashes.set(folder, await folderHash(folder, "refused"));
  const node = task.environment.mounts[nodeInside];
  if (node !== undefined) hashes.set(node, nodeWord);
  return hashOf(replaced(task, hashes)).slice(0, 16);
}

function replaced(value: unknown, by: ReadonlyMap<unknown, unknown>): unknown {
  if (Array.isArray(value)) return value.map((one) => replaced(one, by));
  if (value === null || typeof value !== "object") return by.has(value) ? by.get(value) : value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaced(one, by)]));
}

/** Folders of the cache are named after what is in them. */
async function folderHash(folder: string, links: "refused" | "kept"): Promise<string> {
  return isCached(folder) ? relative(cacheRoot(), folder) : hashTree(await readFolder(folder, { links }));
}
