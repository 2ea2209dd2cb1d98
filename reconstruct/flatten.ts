/** All rows of a trajectory at once, for those who want an array. */
import type { Trajectory } from "../schema/trajectory.ts";
import type { FlatRow } from "./flat-row.ts";
import { type SelectOptions, selectRows } from "./select-rows.ts";

export type FlattenOptions = Partial<SelectOptions>;

export type FlatRows = {
  rows: FlatRow[];
  /** Reason -> calls none of whose sampled tokens is trained in any row. */
  left_out: Record<string, number>;
};

export function flatten(trajectory: Trajectory, options: FlattenOptions = {}): FlatRows {
  const { rows, left_out } = selectRows(trajectory, options);
  return { rows: [...rows], left_out };
}
