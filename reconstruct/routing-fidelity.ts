/** Counts the tokens and rows whose experts are on record, in calls of models with experts. */
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { isRouted } from "./rows/place-routing.ts";
import type { SelectedRows } from "./rows/select-rows.ts";

export type RoutingFidelity = {
  /** Calls of a model with experts that sampled something. */
  calls: number;
  sampled_tokens: number;
  /** Tokens sampled by calls whose experts are on record. */
  recorded_tokens: number;
  /** Number of calls without a record, by reason. */
  missing: Record<string, number>;
  /** Rows of rollouts with such calls. `routed_rows`: rows in which every token that needs experts has them. */
  rows: number;
  routed_rows: number;
};

/** Older releases did not ask engines for experts, and recorded no reason. */
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

/** A turn that was answered from a record counts only in the call that sampled it. */
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
