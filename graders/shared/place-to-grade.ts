/**
 * Where the work of a task is run for its grade. In the agent's own sandbox (`grading: shared`) an agent can leave what changes
 * its grade, so a verdict from there is of tier T0.
 */
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { Tier } from "../../schema/rollout.ts";
import type { GradingPlace, Task } from "../../schema/task.ts";
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
export function tierWhere(task: Pick<Task, "grading">, tier: Tier): Tier {
  return isShared(task) ? "T0" : tier;
}

export function isShared({ grading }: Pick<Task, "grading">): boolean {
  return grading === "shared";
}

/** The task, graded where a run or a service says; null: where the task says. */
export function withGrading(task: Task, grading: GradingPlace | null): Task {
  if (grading === null) return task;
  const { grading: _, ...rest } = task;
  return grading === "fresh" ? rest : { ...rest, grading };
}
