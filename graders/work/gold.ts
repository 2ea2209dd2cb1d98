/** The known solution of a task, as a work. */
import { applyPatch } from "../../base/files/apply-patch.ts";
import { overlay, readFolder } from "../../base/files/file-tree.ts";
import { changesBetween, keepLayer, type WorkLayer } from "../../base/files/layer.ts";
import { patchedPaths } from "../../base/files/parse-patch.ts";
import type { GoldScript, Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import { envInside } from "../../sandboxes/index.ts";
import { type NetworkRules, openNetwork } from "../../sandboxes/network/index.ts";
import { filesAt } from "../hidden-tests.ts";
import { takeWork } from "./work.ts";

export type GoldOptions = {
  signal: AbortSignal;
  /** What a script may reach of the agent's network; it reaches nothing where left out. */
  rules?: NetworkRules;
};

/**
 * The known solution against a sandbox as it is delivered, kept in `folder`; null where the task has none. A script is run
 * in that sandbox, which is of no use afterwards.
 */
export async function goldWork(task: Task, delivered: Sandbox, folder: string, options: GoldOptions): Promise<WorkLayer | null> {
  if (task.gold_script) return scriptedWork(task, task.gold_script, delivered, folder, options);
  if (task.gold_files === null && task.gold_patch === null) return null;
  const { workdir } = task.environment;
  const over = task.gold_files === null ? null : await readFolder(task.gold_files);
  // Only what changes is read: a repository of an image holds ten thousand files.
  const base = await filesAt(delivered, over?.map(({ path }) => path) ?? patchedPaths(task.gold_patch ?? ""));
  const files = over ? overlay(base, over) : applyPatch(base, task.gold_patch ?? "");
  return keepLayer(changesBetween(base, files, workdir), folder);
}

async function scriptedWork(task: Task, script: GoldScript, sandbox: Sandbox, folder: string, options: GoldOptions): Promise<WorkLayer> {
  const { environment } = task;
  const delivered = environment.files === null ? [] : await readFolder(environment.files);
  await runGoldScript(task, script, sandbox, options);
  await sandbox.freeze();
  return takeWork(sandbox, task, delivered, folder, options.signal);
}

/** Leaves what the script made, and nothing of the script. */
export async function runGoldScript(
  { environment, limits }: Task,
  { files, at, command, env }: GoldScript,
  sandbox: Sandbox,
  { signal, rules }: GoldOptions,
): Promise<void> {
  await sandbox.writeFiles(await readFolder(files), at);
  await using network = rules ? await openNetwork(sandbox, "agent", environment.network, rules) : null;
  await sandbox.exec(command, {
    env: { ...envInside(environment, sandbox), ...network?.env, ...env },
    timeout_ms: limits.agent_seconds * 1_000,
    max_output_bytes: limits.output_bytes,
    signal,
  });
  await sandbox.exec(["rm", "-rf", "--", sandbox.path(at)], { cwd: "/", signal });
}
