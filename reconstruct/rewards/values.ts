/**
 * What was measured of a rollout, of an agent, a trace, a call or a single token: named, weighted, and null where nothing
 * was. A null never turns into a 0 on the way: what contains one is null itself.
 */
import { AlidadeError } from "../../errors.ts";
import type { Value } from "../../schema/value.ts";
import type { FlatRow } from "../rows/flat-row.ts";

/** Sum of value × weight over those with a weight other than 0; null where one of them is null, or there is none. */
export function weightedTotal(values: readonly Value[]): number | null {
  const weighted = values.filter(({ weight }) => weight !== null && weight !== 0);
  let total = 0;
  for (const { value, weight } of weighted) {
    if (value === null) return null;
    total += value * (weight as number);
  }
  return weighted.length === 0 ? null : total;
}

/** A value and the token of the row to which it is given; null where the row has no token that is trained. */
export type PlacedValue = Value & { position: number | null };

/**
 * The values that concern this row. Of a rollout, an agent or a trace they stand at the last trained token of theirs, in
 * every row of theirs; those of a call or a token stand at its last token, in the one row that trains it.
 */
export function valuesOfRow(values: readonly Value[], row: FlatRow): PlacedValue[] {
  const calls = new CallPlaces(row);
  return values.flatMap((value): PlacedValue[] => {
    const position = placeOf(value, row, calls);
    return position === undefined ? [] : [{ ...value, position }];
  });
}

/** undefined: it does not concern the row. */
function placeOf({ scope, target }: Value, row: FlatRow, calls: CallPlaces): number | null | undefined {
  if (scope === "rollout") return lastTrained(row, () => true);
  if (scope === "trace") return row.trace_id === target ? lastTrained(row, () => true) : undefined;
  if (scope === "agent") return lastTrained(row, (agent) => agent === target) ?? undefined;
  if (scope === "call") return calls.position(target ?? "", -1);
  const { call_id, index } = toTokenTarget(target ?? "");
  return calls.position(call_id, index);
}

/** A token's target is `<call id>:<index in what the call sampled>`. Throws `request_invalid`. */
export function toTokenTarget(target: string): { call_id: string; index: number } {
  const match = /^(.+):(\d+)$/.exec(target);
  if (match) return { call_id: match[1] as string, index: Number(match[2]) };
  throw new AlidadeError("request_invalid", `A value of scope token has the target "${target}": write CALL_ID:INDEX.`, { param: "target" });
}

function lastTrained(row: FlatRow, isTheirs: (agent: string) => boolean): number | null {
  for (const { start, end, agent, trainable } of row.segments.toReversed()) {
    if (!trainable || !isTheirs(agent)) continue;
    const index = row.loss_mask.slice(start, end).lastIndexOf(1);
    if (index >= 0) return start + index;
  }
  return null;
}

/** Where the row has the samples that are its own. */
class CallPlaces {
  readonly #places = new Map<string, number[]>();

  constructor(row: FlatRow) {
    for (const { kind, call_id, start, end, reason } of row.segments) {
      if (kind !== "sampled") continue;
      const places = this.#places.get(call_id) ?? [];
      // A stretch that another row trains keeps its count here, and nothing else.
      for (let place = start; place < end; place++) places.push(reason === "other_row" ? -1 : place);
      this.#places.set(call_id, places);
    }
  }

  /** Of the call's token at this index (-1: the last); undefined where it is not here, or another row's. */
  position(callId: string, index: number): number | undefined {
    const place = this.#places.get(callId)?.at(index);
    return place === undefined || place < 0 ? undefined : place;
  }
}
