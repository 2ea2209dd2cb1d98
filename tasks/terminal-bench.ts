/**
 * Terminal-Bench 1: a folder with `task.yaml`, `docker-compose.yaml`, `run-tests.sh` and `tests/`, or a folder of such folders.
 * They run unmodified. A task that needs what we cannot give is refused, with the field.
 */
import { stat } from "node:fs/promises";
import type { Task } from "../base/schema/task.ts";
import { loadFolders } from "./load-each.ts";
import { type LoadOptions, networkFlags, type TaskFormat } from "./task-format.ts";
import { terminalBenchFolders } from "./terminal-bench/task-folders.ts";
import { type ReadBenchTask, readTask, toTask } from "./terminal-bench/to-task.ts";

export const terminalBench: TaskFormat = {
  name: "terminal-bench",
  title: "Terminal-Bench 1: a folder with task.yaml, docker-compose.yaml and run-tests.sh, or a folder of such folders",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    return found?.isDirectory() === true && (await terminalBenchFolders(path)).length > 0;
  },

  async load(path, options) {
    const { wanted, tasks } = await loadFolders(await terminalBenchFolders(path), { read: readTask, toTask }, options);
    sayDifferences(wanted, tasks, path, options);
    return tasks;
  },
};

function sayDifferences(
  read: readonly ReadBenchTask[],
  tasks: readonly Task[],
  path: string,
  { allowPublic, verifierNetwork, progress }: LoadOptions,
): void {
  const unknown = [...new Set(read.flatMap((one) => one.unknown))].sort();
  if (unknown.length > 0) progress?.(`${path}: ${unknown.join(", ")}: no field of Terminal-Bench's, and ignored as there`);
  const flags = networkFlags({ allowPublic, verifierNetwork });
  if (tasks.length > 0 && flags !== null)
    progress?.(
      `${path}: ${tasks.length} tasks reach the whole internet in Terminal-Bench. Here they reach nothing, unless you pass ${flags}`,
    );
}
