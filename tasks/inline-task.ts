/**
 * A task that comes as a value and not as a file: a row of a trainer's data set. No folder stands beside it, so it may name
 * no place on this machine, also not in a part of its grader.
 */

import { Task } from "../base/schema/task.ts";
import type { Grader } from "../graders/index.ts";
import { nodeInside } from "../sandboxes/index.ts";
import { nodeWord } from "./node-environment.ts";
import { resolveTask, type TaskPlace } from "./resolve-task.ts";
import { parseTask, taskError } from "./task-error.ts";

const nowhere: TaskPlace = {
  name: "the task",
  async folder(_path, field) {
    throw taskError(this.name, field, "an inline task has no folder: make its files with environment.setup, or name a task of the service");
  },
};

/** A loaded task as a value that another machine may read, where it names no folder of this one: `inlineTask` there says that. */
export function toInline(task: Task): Task {
  const { mounts } = task.environment;
  if (mounts[nodeInside] === undefined) return task;
  return { ...task, environment: { ...task.environment, mounts: { ...mounts, [nodeInside]: nodeWord } } };
}

/** Throws `task_invalid` naming the field. */
export async function inlineTask(value: unknown, known?: readonly Grader[]): Promise<Task> {
  return resolveTask(parseTask(Task, value, nowhere.name), nowhere, known);
}
