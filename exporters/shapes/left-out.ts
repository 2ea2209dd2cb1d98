import type { ExportReport } from "../exporter.ts";

/** Adds to the report what was left out of a trajectory, by reason. */
export function addLeftOut(report: ExportReport, leftOut: Record<string, number>): void {
  for (const [reason, count] of Object.entries(leftOut)) report.left_out[reason] = (report.left_out[reason] ?? 0) + count;
}

export function addOne(counts: Record<string, number>, reason: string): void {
  counts[reason] = (counts[reason] ?? 0) + 1;
}
