/** A set's demands hold at each node, whatever the node's own configuration says: its sandboxes and graders are what is looked at. */
import { AlidadeError } from "../../base/errors.ts";
import { isIsolated } from "../../base/schema/rollout.ts";
import { isBelowTier, tierOfTask } from "../../graders/index.ts";
import type { RunSetup } from "../../rollouts/index.ts";
import type { Claim } from "../ledger/index.ts";

/** Throws `node_unfit` where a verdict of this node would be worth less than the set demands: another node may take the rollout. */
export function assertTrust(
  { task, spec }: Pick<Claim, "task" | "spec">,
  { backend, graders }: Pick<RunSetup, "backend" | "graders">,
): void {
  const { min_tier, admitted_only } = spec;
  const { name, capabilities } = backend;
  if (admitted_only && !isIsolated(capabilities.isolation))
    throw unfit(`admitted_only, and tasks are admitted for isolated sandboxes only: this node's sandbox is ${name}`);
  if (min_tier === undefined) return;
  const tier = tierOfTask(task, backend, graders);
  if (isBelowTier(tier, min_tier))
    throw unfit(
      `min_tier ${min_tier}, and task ${task.task_id} is graded ${tier === null ? "at no known tier" : `as ${tier}`} by this node (sandbox ${name})`,
    );
}

function unfit(why: string): AlidadeError {
  return new AlidadeError("node_unfit", `the set demands ${why}: give all nodes the service's run file, and a sandbox that isolates`);
}
