/** The token rows of a trajectory, as every exporter of tokens takes them: selected, cut, filtered, each token trained once. */

import type { Trajectory } from "../../base/schema/trajectory.ts";
import { dummyRow, type FlatRow, selectRows } from "../../reconstruct/index.ts";
import type { ExportOptions, ExportReport, FormatOptions } from "../exporter.ts";
import { addLeftOut } from "../shapes/left-out.ts";

/**
 * Row by row, for where contexts drift at every turn all rows together are many times the tree. What is left out is in
 * the report.
 */
export function rowsOf(
  trajectory: Trajectory,
  { own: _, ...options }: ExportOptions<unknown>,
  report: ExportReport,
  format: FormatOptions = {},
): Iterable<FlatRow> {
  const { rows, left_out } = selectRows(trajectory, { ...options, ...format });
  addLeftOut(report, left_out);
  return rows;
}

/** A row with mask 0 that holds the rollout's place; empty where no ids of it are known. */
export function placeHolder(trajectory: Trajectory, { own: _, ...options }: ExportOptions<unknown>): FlatRow {
  return dummyRow(trajectory, options);
}
