/** Gives rows the experts of their tokens, by reference, because the numbers take hundreds of bytes a token. */
import { RoutingType } from "../../base/schema/session-log.ts";
import type { NodeBlob, Trajectory } from "../../base/schema/trajectory.ts";
import type { RowPiece } from "../selection/selection.ts";
import { routedExperts } from "../tree/routing-blobs.ts";
import type { FlatRow, RowRouting } from "./flat-row.ts";

/** Returns the blobs of each node, in their order. */
export function routingByNode({ blobs }: Pick<Trajectory, "blobs">): Map<string, NodeBlob[]> {
  const routing = blobs.filter(({ name }) => name === routedExperts);
  return Map.groupBy(routing, ({ node_id }) => node_id);
}

/** Skips a piece behind other tokens than the engine saw: there, the tokens would take other experts. */
export function placeRouting(row: FlatRow, start: number, piece: RowPiece, blobs: readonly NodeBlob[]): void {
  if (piece.context !== "exact") return;
  const { from, to } = piece;
  for (const { span, row: first = 0, ref, shape, dtype } of blobs) {
    const [begin, end] = [Math.max(span[0], from), Math.min(span[1], to)];
    const [, layers, top_k] = shape;
    if (begin >= end || layers === undefined || top_k === undefined) continue;
    const one = {
      start: start + begin - from,
      length: end - begin,
      sha256: ref,
      row: first + begin - span[0],
      layers,
      top_k,
      dtype: RoutingType.parse(dtype),
    };
    const before = row.routing?.at(-1);
    if (before && goesOn(before, one)) before.length += one.length;
    else row.routing = [...(row.routing ?? []), one];
  }
}

function goesOn(before: RowRouting, next: RowRouting): boolean {
  return before.sha256 === next.sha256 && before.start + before.length === next.start && before.row + before.length === next.row;
}

/** True if every token has its experts. A last token that was sampled needs none, because the engine computed no step on it. */
export function isRouted({ routing = [], token_ids }: Pick<FlatRow, "routing" | "token_ids">): boolean {
  const covered = routing.reduce((sum, { length }) => sum + length, 0);
  return routing.length > 0 && covered >= token_ids.length - 1;
}
