/** The calls with fully trained samples, for formats without rows and masks. */
import { type FlatRow, type RowTurn, turnsOf } from "../../reconstruct/index.ts";
import type { ExportReport } from "../exporter.ts";
import { addLeftOut } from "../shapes/left-out.ts";

export type WholeTurn = Omit<RowTurn, "mask" | "logprobs"> & { logprobs: number[] };

/** By call id. A call that is trained in part (a grammar forced the rest) is left out, for no mask could say so. */
export function wholeTurns(rows: Iterable<FlatRow>, report: ExportReport): Map<string, WholeTurn> {
  const whole = new Map<string, WholeTurn>();
  const partly = new Set<string>();
  for (const row of rows)
    for (const { mask, logprobs, ...turn } of turnsOf(row)) {
      const known = logprobs.filter((logprob) => logprob !== null);
      if (mask.every((each) => each === 1) && known.length === mask.length) whole.set(turn.call_id, { ...turn, logprobs: known });
      else if (mask.includes(1)) partly.add(turn.call_id);
    }
  const left = [...partly].filter((call_id) => !whole.has(call_id)).length;
  if (left > 0) addLeftOut(report, { partly_trained: left });
  return whole;
}
