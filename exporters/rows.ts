/** The token rows of a trajectory, as every RL exporter takes them: selected, cut, filtered, each token trained once. */
import { type FlatRow, type SelectOptions, selectRows } from "../reconstruct/index.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { whyIncomparable } from "./comparable.ts";
import type { ExportOptions, ExportReport } from "./exporter.ts";
import { addLeftOut } from "./left-out.ts";

/**
 * Row by row, for where contexts drift at every turn all rows together are many times the tree. What is left out is in
 * the report. `over`: what the format itself decides about the selection, for example `refuse: undefined` where it says
 * with what each token was sampled, so that nothing has to be refused.
 */
export function rowsOf(
  trajectory: Trajectory,
  options: ExportOptions<unknown>,
  report: ExportReport,
  over: Partial<SelectOptions> = {},
): Iterable<FlatRow> {
  const { rows, left_out } = selectRows(trajectory, { ...selectOptions(options), ...over });
  addLeftOut(report, left_out);
  return rows;
}

export function selectOptions({ temperature, own: _own, ...select }: ExportOptions<unknown>): Partial<SelectOptions> {
  return { ...select, refuse: (call) => whyIncomparable(call, temperature) };
}
