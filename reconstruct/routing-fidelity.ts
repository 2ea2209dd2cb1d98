/** How much is on record of which experts the tokens took, in calls of models with experts, and in rows. */
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { isRouted } from "./rows/place-routing.ts";
import type { SelectedRows } from "./rows/select-rows.ts";

export type RoutingFidelity = {
  /** Calls of a model with experts that sampled something. */
  calls: number;
  sampled_tokens: number;
  /** Sampled by calls whose experts are on record. */
  recorded_tokens: number;
  /** Why they are not -> calls. */
  missing: Record<string, number>;
  /** Rows of rollouts with such calls, and those of them in which every token that needs it has its experts. */
  rows: number;
  routed_rows: number;
};

/** Releases before the first that asked engines for it recorded no reason either. */
const notAsked = "not_asked";

export function routingFidelityOf({ calls }: Trajectory, { rows }: Pick<SelectedRows, "rows">): RoutingFidelity {
  const sum: RoutingFidelity = { calls: 0, sampled_tokens: 0, recorded_tokens: 0, missing: {}, rows: 0, routed_rows: 0 };
  for (const call of calls) if (hasExperts(call)) addCall(sum, call);
  if (sum.calls === 0) return sum;
  for (const row of rows) {
    sum.rows++;
    if (isRouted(row)) sum.routed_rows++;
  }
  return sum;
}

/** A turn that was answered from a record is counted where it was sampled. */
function hasExperts({ experts, routing, sampled_length, replayed_from }: CallRecord): boolean {
  return (experts !== undefined || routing !== undefined) && (sampled_length ?? 0) > 0 && replayed_from === null;
}

function addCall(sum: RoutingFidelity, { routing: told, sampled_length }: CallRecord): void {
  const routing = told ?? notAsked;
  sum.calls++;
  sum.sampled_tokens += sampled_length ?? 0;
  if (routing === "recorded") sum.recorded_tokens += sampled_length ?? 0;
  else sum.missing[routing] = (sum.missing[routing] ?? 0) + 1;
}
