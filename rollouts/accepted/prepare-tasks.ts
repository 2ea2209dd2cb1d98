/** Makes what the sandboxes of tasks start from, before the first sandbox starts. */
import type { AlidadeError } from "../../base/errors.ts";
import type { Environment, Task } from "../../base/schema/task.ts";
import type { Grader } from "../../graders/index.ts";
import { environmentsOf } from "../../graders/index.ts";
import type { PreparedImage, PrepareOptions, SandboxBackend } from "../../sandboxes/index.ts";
import { isSome, noneLeft } from "../../tasks/sets/index.ts";
import { acceptedTasks, isTheUsers, namingTask, type OnTaskLeftOut } from "./accepted-tasks.ts";

export type TaskPreparation = Omit<PrepareOptions, "user"> & {
  run_id: string;
  graders?: readonly Grader[];
  /** Gets the error of each task whose sandbox cannot be made. */
  onLeftOut: OnTaskLeftOut;
  /** Throws nothing if no task is left, because the caller has other work. Default: false. */
  mayBeNone?: boolean;
};

/**
 * Returns the tasks that are ready. Prepares all at once. If the backend refuses that, prepares each by itself and leaves out
 * those that are refused. Also leaves out a task with an image that cannot be had, because its rollouts could not begin.
 */
export async function prepareTasks(tasks: readonly Task[], backend: SandboxBackend, options: TaskPreparation): Promise<Task[]> {
  const { run_id, graders, onLeftOut, mayBeNone = false, ...rest } = options;
  const lacking = new Map<string, AlidadeError>();
  const prepare = async (some: readonly Task[]): Promise<void> => {
    const wanted = environmentsOf(some, graders);
    const user = { run_id, tasks: wanted.map(({ task_id }) => task_id) };
    const environments = wanted.map(({ environment }) => environment);
    const made = await prepareImages(backend, environments, { ...rest, user });
    for (const [index, { error }] of made.entries()) if (error !== null) lacking.set(wanted[index]?.task_id ?? "", error);
  };
  const prepared = await allOrEach(tasks, prepare, onLeftOut, mayBeNone);
  const errors = prepared.flatMap((task) => {
    const error = lacking.get(task.task_id);
    return error ? [namingTask(task, error)] : [];
  });
  if (isSome(errors) && errors.length === prepared.length && !mayBeNone) throw noneLeft(errors);
  errors.forEach(onLeftOut);
  return prepared.filter(({ task_id }) => !lacking.has(task_id));
}

/** Returns [] if the backend makes sandboxes without images. */
async function prepareImages(backend: SandboxBackend, environments: Environment[], options: PrepareOptions): Promise<PreparedImage[]> {
  if (backend.images) return backend.images.prepare(environments, options);
  await backend.prepare(environments, options);
  return [];
}

async function allOrEach(
  tasks: readonly Task[],
  prepare: (some: readonly Task[]) => Promise<void>,
  onLeftOut: OnTaskLeftOut,
  mayBeNone: boolean,
): Promise<Task[]> {
  try {
    await prepare(tasks);
    return [...tasks];
  } catch (error) {
    if (!isTheUsers(error) || (tasks.length === 1 && !mayBeNone)) throw error;
  }
  return acceptedTasks(tasks, (task) => prepare([task]), onLeftOut, mayBeNone);
}
