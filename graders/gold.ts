/** The known solution of a task, as a work. */
import { applyPatch } from "../files/apply-patch.ts";
import type { TreeFile } from "../files/file-tree.ts";
import { overlay, readFolder } from "../files/file-tree.ts";
import { changesBetween, keepLayer, type WorkLayer } from "../files/layer.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Task } from "../schema/task.ts";

/** The known solution against a sandbox as it is delivered, kept in `folder`; null where the task has none. */
export async function goldWork(task: Task, delivered: Sandbox, folder: string): Promise<WorkLayer | null> {
  if (task.gold_files === null && task.gold_patch === null) return null;
  const { workdir } = task.environment;
  const base = await delivered.readFiles(workdir, { exclude: ["**/.git"] });
  const files = await goldFiles(task, base);
  return files && keepLayer(changesBetween(base, files, workdir), folder);
}

async function goldFiles(task: Task, base: TreeFile[]): Promise<TreeFile[] | null> {
  if (task.gold_files !== null) return overlay(base, await readFolder(task.gold_files));
  return task.gold_patch === null ? null : applyPatch(base, task.gold_patch);
}
