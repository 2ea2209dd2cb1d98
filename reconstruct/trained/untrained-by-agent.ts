/**
 * Sampled tokens that are not trained for what an agent itself can bring about: it brings a call to fail, says that a call
 * is a side call, or looks at images; outside a sandbox also: it hangs up before its answer, or uses a part of it. A grammar
 * is not among them: in a sandbox only the operator allows one.
 */
import type { UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";

const reasons = ["undelivered", "failed", "auxiliary", "images"] as const satisfies UntrainedReason[];

/** Reason -> tokens. */
export function untrainedByAgent({
  fidelity: { excluded },
}: {
  fidelity: Pick<Trajectory["fidelity"], "excluded">;
}): Record<string, number> {
  return Object.fromEntries(reasons.flatMap((reason) => (excluded[reason] ? [[reason, excluded[reason]]] : [])));
}
