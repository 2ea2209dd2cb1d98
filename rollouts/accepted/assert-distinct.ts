import { AlidadeError } from "../../base/errors.ts";
import type { Task } from "../../base/schema/task.ts";

/** Throws `task_invalid` where two tasks have one id: names of rollouts and keys of groups are made of it. */
export function assertDistinct(tasks: readonly Pick<Task, "task_id">[]): void {
  const seen = new Set<string>();
  for (const { task_id } of tasks) {
    if (seen.has(task_id))
      throw new AlidadeError(
        "task_invalid",
        `two tasks of this run have the task_id ${task_id}: their rollouts would have the same names`,
        { param: "task_id" },
      );
    seen.add(task_id);
  }
}
