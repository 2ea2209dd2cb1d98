/**
 * Where the work of a task is run for its grade. In the agent's own sandbox (`grading: shared`) an agent can leave what changes
 * its grade, so a verdict from there is of tier T0.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { Tier } from "../../base/schema/rollout.ts";
import type { GradingPlace, Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { GradeContext } from "../grader.ts";

/** The agent's own sandbox, where the task is graded there; otherwise a fresh one without the work. */
export function placeToGrade({ lend, fresh }: Pick<GradeContext, "lend" | "fresh">): Promise<Sandbox> {
  return lend?.() ?? fresh();
}

/** The tier of a verdict from this sandbox. `tier`: that from a container that the agent never had. */
export function tierIn({ facts }: Pick<Sandbox, "facts">, tier: Tier): Tier {
  return facts.isolation === "container" ? tier : "T0";
}

/** The same, before there is a sandbox. */
export function tierWhere(task: PlaceOfTask, tier: Tier): Tier {
  return isShared(task) ? "T0" : tier;
}

type PlaceOfTask = Pick<Task, "grading" | "keep_processes">;

export function isShared(task: PlaceOfTask): boolean {
  return task.grading === "shared" || keepsProcesses(task);
}

/** Whether the agent's processes live while its work is graded. */
export function keepsProcesses({ keep_processes }: Pick<Task, "keep_processes">): boolean {
  return keep_processes === true;
}

/**
 * The task, graded where a run or a service says; null: where the task says. `keep`: with the agent's processes, whatever the task
 * says. Throws `config_invalid` for both a fresh place and processes in it.
 */
export function withGrading(task: Task, grading: GradingPlace | null, keep = false): Task {
  if (keep && grading === "fresh")
    throw new AlidadeError(
      "config_invalid",
      "keep_processes is true beside grading fresh, where no process of an agent lives: leave one of them out",
      {
        param: "keep_processes",
      },
    );
  if (grading === null && !keep) return task;
  const { grading: own, keep_processes, ...rest } = task;
  if (grading === "fresh") return rest;
  const place = grading ?? (own === "fresh" ? undefined : own);
  return { ...rest, ...(place && { grading: place }), ...((keep || keep_processes) && { keep_processes: true }) };
}
