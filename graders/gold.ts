/** The known solution of a task, as the files of a workdir. */
import { applyPatch } from "../files/apply-patch.ts";
import type { TreeFile } from "../files/file-tree.ts";
import { overlay, readFolder } from "../files/file-tree.ts";
import type { Task } from "../schema/task.ts";

/** Null where the task has none. */
export async function goldFiles(task: Task, base: TreeFile[]): Promise<TreeFile[] | null> {
  if (task.gold_files !== null) return overlay(base, await readFolder(task.gold_files));
  return task.gold_patch === null ? null : applyPatch(base, task.gold_patch);
}
