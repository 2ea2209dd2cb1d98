/**
 * What a task's set-up left in its sandbox, kept once and put into every sandbox that grades: the agent's work is what
 * changed since, and it is graded on the very files that it was done on.
 */
import type { TreeFile } from "../../base/files/file-tree.ts";
import { keepLayer, readLayer, type WorkLayer } from "../../base/files/layer.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import { deliveredPaths, removePaths, whereThereIsSpace } from "./work.ts";

/** Everywhere that a set-up can write, its memory file systems too. */
const places = ["/", "/home/agent", "/tmp"];

/** Into `<folder>/<hash>.tar.gz`; null where the task has no set-up, which then costs nothing. */
export async function keepSetUp(
  sandbox: Sandbox,
  { environment }: Task,
  delivered: TreeFile[],
  folder: string,
  signal: AbortSignal,
): Promise<WorkLayer | null> {
  if (environment.setup === null) return null;
  const entries = sandbox.changes(places, { of: "setup", signal });
  return whereThereIsSpace(folder, keepLayer(entries, folder, { delivered: deliveredPaths(environment, delivered) }));
}

/** Into a sandbox with the task's files in it, in the place of running the set-up. */
export async function placeSetUp(sandbox: Sandbox, setUp: WorkLayer, signal: AbortSignal): Promise<void> {
  await removePaths(
    sandbox,
    setUp.changes.filter(({ type }) => type === "deleted").map(({ path }) => path),
    signal,
  );
  await sandbox.putEntries(readLayer(setUp));
}
