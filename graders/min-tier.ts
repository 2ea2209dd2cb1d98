/** Refuses a task whose verdicts would be worth less than a run asks for, before anything is sampled. */
import { AlidadeError } from "../base/errors.ts";
import { isIsolated, Tier } from "../base/schema/rollout.ts";
import type { GraderSpec, Task } from "../base/schema/task.ts";
import type { SandboxBackend } from "../sandboxes/index.ts";
import type { Grader } from "./grader.ts";
import { graderOf, specOfGrader } from "./registry.ts";

/** The tier of a task's verdicts here; null where its grader tells none. */
export function tierOfTask(
  task: Task,
  { capabilities: { isolation } }: Pick<SandboxBackend, "capabilities">,
  known?: readonly Grader[],
): Tier | null {
  const tierOf = (spec: GraderSpec): Tier | null => graderOf(spec, known).tier?.(specOfGrader(spec, known), task, tierOf) ?? null;
  return isIsolated(isolation) ? tierOf(task.grader) : "T0";
}

export function isBelowTier(tier: Tier | null, least: Tier): boolean {
  return tier === null || Tier.options.indexOf(tier) < Tier.options.indexOf(least);
}

/** Throws `config_invalid` if the task's tier is below `least`. */
export function checkTier(task: Task, least: Tier | null, backend: Pick<SandboxBackend, "capabilities">, known?: readonly Grader[]): void {
  const tier = least === null ? null : tierOfTask(task, backend, known);
  if (least === null || !isBelowTier(tier, least)) return;
  const sandbox = isIsolated(backend.capabilities.isolation)
    ? ""
    : "; a sandbox that isolates nothing gives T0 to every task: use --sandbox docker";
  throw new AlidadeError(
    "config_invalid",
    `min_tier is ${least}, and the task ${task.task_id} is graded below it (${task.grader.kind}: ${tier ?? "no tier is known"})${sandbox}. Grade it in another way, or lower min_tier`,
    { param: "min_tier" },
  );
}
