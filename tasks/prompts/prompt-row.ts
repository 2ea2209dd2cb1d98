/** A task as a row of a trainer's own data set: what it is, and the prompt in that trainer's columns. */
import type { HashedTask, TaskSet } from "../sets/task-set.ts";

/** What every row says, so that a rollout can be asked for by it and joined to its task later. */
export type TaskFacts = {
  task_id: string;
  data_source: string;
  task_hash: string;
  task_set: string;
  task_set_version: string | null;
  task_set_hash: string;
  labels: Record<string, string>;
};

export interface PromptFormat {
  readonly name: string;
  readonly title: string;
  /** `index`: the row's place in the file. */
  row(facts: TaskFacts, instruction: string, index: number): Record<string, unknown>;
}

export function factsOf({ id, version, hash }: Omit<TaskSet, "tasks">, { task, hash: task_hash }: HashedTask): TaskFacts {
  return {
    task_id: task.task_id,
    data_source: task.data_source ?? id,
    task_hash,
    task_set: id,
    task_set_version: version,
    task_set_hash: hash,
    labels: task.labels,
  };
}
