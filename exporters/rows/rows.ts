/** The token rows of a trajectory, as every exporter of tokens takes them: selected, cut, filtered, each token trained once. */
import { dummyRow, type FlatRow, imagesOf, type SelectOptions, selectRows } from "../../reconstruct/index.ts";
import type { CallRecord, Trajectory } from "../../schema/trajectory.ts";
import type { ExportOptions, ExportReport } from "../exporter.ts";
import { addLeftOut } from "../shapes/left-out.ts";
import { whyIncomparable } from "./comparable.ts";

/** What the format itself decides; its `refuse` stands in place of the rule about temperatures. */
type Over = Partial<SelectOptions>;

/**
 * Row by row, for where contexts drift at every turn all rows together are many times the tree. What is left out is in
 * the report.
 */
export function rowsOf(trajectory: Trajectory, options: ExportOptions<unknown>, report: ExportReport, over: Over = {}): Iterable<FlatRow> {
  const { rows, left_out } = selectRows(trajectory, toSelectOptions(trajectory, options, over));
  addLeftOut(report, left_out);
  return rows;
}

/** A row with mask 0 that holds the rollout's place; empty where no ids of it are known. */
export function placeHolder(trajectory: Trajectory, options: ExportOptions<unknown>): FlatRow {
  return dummyRow(trajectory, toSelectOptions(trajectory, options));
}

function toSelectOptions(trajectory: Trajectory, { temperature, own: _, ...select }: ExportOptions<unknown>, over: Over = {}): Over {
  const images = imagesOf(trajectory);
  const refuse = over.refuse ?? ((call: CallRecord) => whyIncomparable(call, temperature));
  return {
    ...select,
    ...over,
    // The ids of an image are place holders; without its pixels, which no format here carries, they are another context.
    refuse: (call) => (images.size > 0 && call.input.some((id) => images.has(id)) ? "images" : refuse(call)),
  };
}
