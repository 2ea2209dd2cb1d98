/** One task that cannot be run is no reason against the others: it is left out and named. */
import { AlidadeError } from "../../base/errors.ts";
import { Limiter } from "../../base/host/limiter.ts";
import type { Task } from "../../base/schema/task.ts";
import { isSome, noneLeft } from "../../tasks/none-left.ts";

export type OnTaskLeftOut = (error: AlidadeError) => void;

type Accept = (task: Task) => void | Promise<void>;

/** Builds and pulls share the engine. */
const atOnce = 3;

/**
 * The tasks that `accept` takes, in their order. It refuses one by an error that is the user's, which `onLeftOut` gets.
 * Throws all of them as one where no task is left, unless that may be, and every other error.
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

/** A mistake in a task or a configuration, and no failure of a machine. */
export function isTheUsers(error: unknown): error is AlidadeError {
  return error instanceof AlidadeError && error.owner === "user";
}

/** The error with the task's name before it. */
export function namingTask({ task_id }: Task, error: AlidadeError): AlidadeError {
  if (error.message.includes(`task ${task_id} `)) return error;
  return new AlidadeError(error.code, `task ${task_id}: ${error.message}`, { cause: error, param: error.param });
}
