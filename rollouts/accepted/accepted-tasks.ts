/** Leaves out a task that cannot run, and names it. The others go on. */
import { AlidadeError } from "../../base/errors.ts";
import { Limiter } from "../../base/host/limiter.ts";
import type { Task } from "../../base/schema/task.ts";
import { isSome, noneLeft } from "../../tasks/sets/index.ts";

export type OnTaskLeftOut = (error: AlidadeError) => void;

type Accept = (task: Task) => void | Promise<void>;

/** Small, because builds and pulls share the engine. */
const atOnce = 3;

/**
 * Returns the tasks that `accept` takes, in their order. `accept` refuses a task by throwing an error that the user can mend;
 * `onLeftOut` gets it. If no task is left, throws one error with all reasons, unless `mayBeNone`. Throws all other errors on.
 */
export async function acceptedTasks(tasks: readonly Task[], accept: Accept, onLeftOut: OnTaskLeftOut, mayBeNone = false): Promise<Task[]> {
  const limiter = new Limiter(atOnce);
  const refusals = await Promise.all(tasks.map((task) => limiter.run(undefined, () => refusalOf(task, accept))));
  const errors = refusals.filter((error) => error !== null);
  if (isSome(errors) && errors.length === tasks.length && !mayBeNone) throw noneLeft(errors);
  errors.forEach(onLeftOut);
  return tasks.filter((_, index) => refusals[index] === null);
}

async function refusalOf(task: Task, accept: Accept): Promise<AlidadeError | null> {
  try {
    await accept(task);
    return null;
  } catch (error) {
    if (isTheUsers(error)) return namingTask(task, error);
    throw error;
  }
}

/** Whether it is a mistake in a task or a configuration, and not a failure of a machine. */
export function isTheUsers(error: unknown): error is AlidadeError {
  return error instanceof AlidadeError && error.owner === "user";
}

/** Returns the error with the task's name in front. */
export function namingTask({ task_id }: Task, error: AlidadeError): AlidadeError {
  if (error.message.includes(`task ${task_id} `)) return error;
  return new AlidadeError(error.code, `task ${task_id}: ${error.message}`, { cause: error, param: error.param });
}
