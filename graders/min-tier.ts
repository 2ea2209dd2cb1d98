/** Refuses tasks whose verdicts would be worth less than a run asks for, before anything is sampled. */
import { AlidadeError } from "../errors.ts";
import type { SandboxBackend } from "../sandboxes/sandbox.ts";
import { Tier } from "../schema/rollout.ts";
import type { GraderSpec, Task } from "../schema/task.ts";
import type { Grader } from "./grader.ts";
import { graderOf, specOfGrader } from "./index.ts";

/** The tier of a task's verdicts here; null where its grader tells none. */
export function tierOfTask(
  task: Task,
  { capabilities: { isolation } }: Pick<SandboxBackend, "capabilities">,
  known?: readonly Grader[],
): Tier | null {
  const tierOf = (spec: GraderSpec): Tier | null => graderOf(spec, known).tier?.(specOfGrader(spec, known), task, tierOf) ?? null;
  return isolation === "none" ? "T0" : tierOf(task.grader);
}

export function isBelowTier(tier: Tier | null, least: Tier): boolean {
  return tier === null || Tier.options.indexOf(tier) < Tier.options.indexOf(least);
}

/** As many as a person reads. */
const namedTasks = 10;

/** Throws `config_invalid` with the tasks that are below. */
export function checkTiers(
  tasks: readonly Task[],
  least: Tier | null,
  backend: Pick<SandboxBackend, "capabilities">,
  known?: readonly Grader[],
): void {
  if (least === null) return;
  const below = tasks
    .map((task) => ({ task, tier: tierOfTask(task, backend, known) }))
    .filter(({ tier }) => isBelowTier(tier, least))
    .map(({ task, tier }) => `${task.task_id} (${task.grader.kind}: ${tier ?? "no tier is known"})`);
  if (below.length === 0) return;
  const more = below.length > namedTasks ? ` and ${below.length - namedTasks} more` : "";
  const sandbox = backend.capabilities.isolation === "none" ? "; the process sandbox gives T0 to every task: use docker" : "";
  throw new AlidadeError(
    "config_invalid",
    `min_tier is ${least}, and ${below.length} of ${tasks.length} tasks are graded below it: ${below.slice(0, namedTasks).join(", ")}${more}${sandbox}. Grade them in another way, leave them out, or lower min_tier`,
    { param: "min_tier" },
  );
}
