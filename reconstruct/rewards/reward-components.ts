/** Totals and token positions of reward components. A null never becomes 0: a total with a null in it is null. */
import { AlidadeError } from "../../base/errors.ts";
import type { RewardComponent } from "../../base/schema/reward-component.ts";
import type { FlatRow } from "../rows/flat-row.ts";

/** Sum of value × weight over the components with a weight other than 0; null where one of them is null, or there is none. */
export function weightedTotal(components: readonly RewardComponent[]): number | null {
  const weighted = components.filter(({ weight }) => weight !== null && weight !== 0);
  let total = 0;
  for (const { value, weight } of weighted) {
    if (value === null) return null;
    total += value * (weight as number);
  }
  return weighted.length === 0 ? null : total;
}

/** A component and the token of the row that gets it; null where the row has no trained token. */
export type PlacedComponent = RewardComponent & { position: number | null };

/**
 * The reward components of this row. One of a rollout, an agent or a trace stands at its last trained token, in each of its
 * rows. One of a call or a token stands at its last token, in the one row that trains it.
 */
export function componentsOfRow(components: readonly RewardComponent[], row: FlatRow): PlacedComponent[] {
  const calls = new CallPlaces(row);
  return components.flatMap((component): PlacedComponent[] => {
    const position = placeOf(component, row, calls);
    return position === undefined ? [] : [{ ...component, position }];
  });
}

/** undefined: the row has no such place. */
function placeOf({ scope, target }: RewardComponent, row: FlatRow, calls: CallPlaces): number | null | undefined {
  if (scope === "rollout") return lastTrained(row, () => true);
  if (scope === "trace") return row.trace_id === target ? lastTrained(row, () => true) : undefined;
  if (scope === "agent") return lastTrained(row, (agent) => agent === target) ?? undefined;
  if (scope === "call") return calls.position(target ?? "", -1);
  const { call_id, index } = toTokenTarget(target ?? "");
  return calls.position(call_id, index);
}

/** A token's target is `<call id>:<index in what the call sampled>`. Throws `request_invalid`. */
function toTokenTarget(target: string): { call_id: string; index: number } {
  const match = /^(.+):(\d+)$/.exec(target);
  if (match) return { call_id: match[1] as string, index: Number(match[2]) };
  throw new AlidadeError("request_invalid", `A reward component of scope token has the target "${target}": write CALL_ID:INDEX.`, {
    param: "target",
  });
}

function lastTrained(row: FlatRow, isTheirs: (agent: string) => boolean): number | null {
  for (const { start, end, agent, trainable } of row.segments.toReversed()) {
    if (!trainable || !isTheirs(agent)) continue;
    const index = row.loss_mask.slice(start, end).lastIndexOf(1);
    if (index >= 0) return start + index;
  }
  return null;
}

/** Row positions of the samples that this row trains. */
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

  /** The row position of the call's token at this index (-1: the last); undefined where it is not in this row, or another row trains it. */
  position(callId: string, index: number): number | undefined {
    const place = this.#places.get(callId)?.at(index);
    return place === undefined || place < 0 ? undefined : place;
  }
}
