/** The token rows of a trajectory, as every RL exporter takes them: selected, cut, filtered, each token trained once. */
import { type FlatRow, flattenLazily } from "../reconstruct/index.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { whyIncomparable } from "./comparable.ts";
import type { ExportOptions, ExportReport } from "./exporter.ts";
import { addLeftOut } from "./left-out.ts";

/**
 * Row by row, for where contexts drift at every turn all rows together are many times the tree. What is left out is in
 * the report. `anyTemperature`: the format says with what each token was sampled, so that nothing has to be refused.
 */
export function rowsOf(
  trajectory: Trajectory,
  options: ExportOptions<unknown>,
  report: ExportReport,
  { anyTemperature = false } = {},
): Iterable<FlatRow> {
  const { maxTokens, allowGrammar, temperature } = options;
  const { rows, left_out } = flattenLazily(trajectory, {
    maxTokens,
    allowGrammar,
    refuse: (call) => (anyTemperature ? null : whyIncomparable(call, temperature)),
  });
  addLeftOut(report, left_out);
  return rows;
}
