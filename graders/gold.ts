/** The known solution of a task, as the files of a workdir. */
import { applyPatch } from "../sandboxes/apply-patch.ts";
import { overlay, readFolder } from "../sandboxes/file-tree.ts";
import type { SandboxFile } from "../sandboxes/sandbox.ts";
import type { Task } from "../schema/task.ts";

/** Null where the task has none. */
export async function goldFiles(task: Task, base: SandboxFile[]): Promise<SandboxFile[] | null> {
  if (task.gold_files !== null) return overlay(base, await readFolder(task.gold_files));
  return task.gold_patch === null ? null : applyPatch(base, task.gold_patch);
}
