/**
 * Chooses the sandbox in which a work is graded. In the agent's own sandbox (`grading: shared`) the agent can leave things that
 * change its grade, so a verdict from there has the tier T0.
 */
import { AlidadeError } from "../../base/errors.ts";
import { isApart, type Tier } from "../../base/schema/rollout.ts";
import type { GradingPlace, Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import type { GradeContext } from "../grader.ts";

/** Returns the agent's own sandbox if it is lent; otherwise a fresh one without the work. */
export function placeToGrade({ lend, fresh }: Pick<GradeContext, "lend" | "fresh">): Promise<Sandbox> {
  return lend?.() ?? fresh();
}

/** Returns the tier of a verdict from this sandbox. `tier`: what it would be in a sandbox that the agent never had. */
export function tierIn({ facts }: Pick<Sandbox, "facts">, tier: Tier): Tier {
  return isApart(facts.isolation) ? tier : "T0";
}

/** Returns the same before a sandbox exists. */
export function tierWhere(task: PlaceOfTask, tier: Tier): Tier {
  return isShared(task) ? "T0" : tier;
}

type PlaceOfTask = Pick<Task, "grading" | "keep_processes">;

export function isShared(task: PlaceOfTask): boolean {
  return task.grading === "shared" || keepsProcesses(task);
}

/** Whether the agent's processes run while its work is graded. */
export function keepsProcesses({ keep_processes }: Pick<Task, "keep_processes">): boolean {
  return keep_processes === true;
}

/**
 * Returns the task with the place that a run or a service says; `grading` null: the task decides. `keep`: the agent's processes
 * live during grading, whatever the task says. Throws `config_invalid` for a fresh place together with `keep`.
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
