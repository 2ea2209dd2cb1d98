/** Makes what the sandboxes of tasks start from, before the first of them. */
import type { Grader } from "../../graders/grader.ts";
import { environmentsOf } from "../../graders/index.ts";
import type { PrepareOptions, SandboxBackend } from "../../sandboxes/sandbox.ts";
import type { Task } from "../../schema/task.ts";
import { acceptedTasks, isTheUsers, type OnTaskLeftOut } from "./accepted-tasks.ts";

export type TaskPreparation = Omit<PrepareOptions, "user"> & {
  run_id: string;
  graders?: readonly Grader[];
  /** Gets the error of each task whose sandbox cannot be. */
  onLeftOut: OnTaskLeftOut;
  /** Where no task is left there is something else to go on with: then nothing is thrown. Default: no. */
  mayBeNone?: boolean;
};

/**
 * The tasks that are ready. All are prepared at once; where that is refused each one by itself, and the refused ones are
 * left out. An image that cannot be had fails its own sandboxes later.
 */
export async function prepareTasks(tasks: readonly Task[], backend: SandboxBackend, options: TaskPreparation): Promise<Task[]> {
  const { run_id, graders, onLeftOut, mayBeNone = false, ...rest } = options;
  const prepare = async (some: readonly Task[]): Promise<void> => {
    const wanted = environmentsOf(some, graders);
    const user = { run_id, tasks: wanted.map(({ task_id }) => task_id) };
    const environments = wanted.map(({ environment }) => environment);
    await backend.prepare(environments, { ...rest, user });
  };
  try {
    await prepare(tasks);
    return [...tasks];
  } catch (error) {
    if (!isTheUsers(error) || (tasks.length === 1 && !mayBeNone)) throw error;
  }
  return acceptedTasks(tasks, (task) => prepare([task]), onLeftOut, mayBeNone);
}
