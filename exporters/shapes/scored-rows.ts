/**
 * Rows for trainers that compare the rewards of a group: one baseline entry for each rollout that was measured, and none
 * for one that was not. A rollout that counts in the baseline but trains nothing gives a dummy row, so that its reward
 * is still seen.
 */

import type { RolloutReason } from "../../base/schema/reasons/left-out.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { type FlatRow, imagesOf } from "../../reconstruct/index.ts";
import type { ExportOptions, ExportReport, FormatOptions } from "../exporter.ts";
import { placeHolder, rowsOf } from "../rows/rows.ts";
import { leaveOutRollout } from "./left-out.ts";

/** Rows with a measured reward; a dummy row has mask 0 throughout. */
export type ScoredRow = FlatRow & { reward: number };

/** Leaves out, with its reason, a rollout without a reward, one outside the baseline, and one without any tokens. */
export function* scoredRows(
  trajectory: Trajectory,
  options: ExportOptions<unknown>,
  report: ExportReport,
  format: FormatOptions = {},
): Iterable<ScoredRow> {
  let any = false;
  for (const row of rowsOf(trajectory, options, report, format)) {
    any = true;
    const reason = whyUnscored(row);
    if (reason !== null) return leaveOutRollout(report, reason);
    if (row.dummy) report.dummy_rows++;
    yield row as ScoredRow;
  }
  if (any) return;
  const dummy = placeOf(trajectory, options);
  if (typeof dummy === "string") return leaveOutRollout(report, dummy);
  report.dummy_rows++;
  yield dummy;
}

/** The dummy row of a rollout that counts in the baseline, or why it has none. */
export function placeOf(trajectory: Trajectory, options: ExportOptions<unknown>): ScoredRow | RolloutReason {
  const row = placeHolder(trajectory, options);
  const isBlank = row.token_ids.length === 0 ? "no_token_ids" : null;
  return whyUnscored(row) ?? isBlank ?? (isBlind(row, trajectory, options) ? "images" : (row as ScoredRow));
}

/** True if the row would lack its pictures: the format has none, or the engine did not say where they stand in the prompt. */
function isBlind({ segments }: FlatRow, trajectory: Trajectory, { readsImages }: ExportOptions<unknown>): boolean {
  const images = imagesOf(trajectory);
  if (images.size === 0 || !readsImages) return images.size > 0;
  const ids = new Set(segments.map(({ call_id }) => call_id));
  return trajectory.calls.some((call) => ids.has(call.call_id) && !call.media && call.input.some((id) => images.has(id)));
}

/** Why the rollout's reward cannot stand in a baseline that is computed from rows. */
export function whyUnscored({ reward, in_baseline }: Pick<FlatRow, "reward" | "in_baseline">): "no_reward" | "not_in_baseline" | null {
  if (reward === null) return "no_reward";
  return in_baseline ? null : "not_in_baseline";
}
