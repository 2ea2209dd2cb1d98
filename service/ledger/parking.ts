/** Rollouts that were parked (`straggler_cut` with `rest: park`): how long a set holds them, and why one goes on in no later group. */
import type { ParkedReason } from "../../base/schema/reasons/parked.ts";
import { lowestStep } from "./admission.ts";
import type { DatabaseRow } from "./database-row.ts";
import { type SetSpec, usualParkMost, usualParkSeconds } from "./records.ts";

/** One that waits may go on where it was parked at `since` or later, in a group that was begun at `step` or later. */
export function parkBounds(spec: SetSpec, { now, step }: { now: number; step: number | null }): { since: number; step: number } {
  return { since: now - (spec.straggler_cut?.park_seconds ?? usualParkSeconds) * 1000, step: lowestStep(spec, step) };
}

export type SetNow = { now: number; step: number | null; isOver: boolean };

/** `waiting`: rows that no rollout has taken up, the newest first. Returns those to drop. */
export function dropsOf(spec: SetSpec, waiting: readonly DatabaseRow[], at: SetNow): { rollout_id: string; reason: ParkedReason }[] {
  const bounds = parkBounds(spec, at);
  const most = spec.straggler_cut?.park_most ?? usualParkMost;
  let held = 0;
  const reasonOf = ({ step, since }: DatabaseRow): ParkedReason | null => {
    if (at.isOver) return "set_over";
    if (step != null && Number(step) < bounds.step) return "too_stale";
    if (Number(since) < bounds.since) return "too_old";
    held += 1;
    return held > most ? "too_many" : null;
  };
  return waiting.flatMap((row) => {
    const reason = reasonOf(row);
    return reason === null ? [] : [{ rollout_id: String(row.rollout_id), reason }];
  });
}
