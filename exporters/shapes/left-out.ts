import type { GroupReason, RolloutReason } from "../../base/schema/reasons/left-out.ts";
import type { UntrainedReason } from "../../base/schema/reasons/untrained.ts";
import type { ExportReport } from "../exporter.ts";

/** Adds to the report what was left out of a trajectory: reason -> calls. */
export function addLeftOut(report: ExportReport, leftOut: { [Reason in UntrainedReason]?: number }): void {
  for (const [reason, count] of Object.entries(leftOut)) report.left_out[reason] = (report.left_out[reason] ?? 0) + count;
}

export function leaveOutRollout(report: ExportReport, reason: RolloutReason): void {
  addOne(report.left_out_rollouts, reason);
}

export function leaveOutGroup(report: ExportReport, reason: GroupReason): void {
  addOne(report.left_out_groups, reason);
}

function addOne(counts: Record<string, number>, reason: string): void {
  counts[reason] = (counts[reason] ?? 0) + 1;
}
