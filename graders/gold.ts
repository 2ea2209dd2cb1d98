/** The known solution of a task, as a work. */
import { applyPatch } from "../files/apply-patch.ts";
import { overlay, readFolder } from "../files/file-tree.ts";
import { changesBetween, keepLayer, type WorkLayer } from "../files/layer.ts";
import { patchedPaths } from "../files/parse-patch.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Task } from "../schema/task.ts";
import { filesAt } from "./hidden-tests.ts";

/** The known solution against a sandbox as it is delivered, kept in `folder`; null where the task has none. */
export async function goldWork(task: Task, delivered: Sandbox, folder: string): Promise<WorkLayer | null> {
  if (task.gold_files === null && task.gold_patch === null) return null;
  const { workdir } = task.environment;
  const over = task.gold_files === null ? null : await readFolder(task.gold_files);
  // Only what changes is read: a repository of an image holds ten thousand files.
  const base = await filesAt(delivered, over?.map(({ path }) => path) ?? patchedPaths(task.gold_patch ?? ""));
  const files = over ? overlay(base, over) : applyPatch(base, task.gold_patch ?? "");
  return keepLayer(changesBetween(base, files, workdir), folder);
}
