/** Names the experts that the tokens of a row took. Rows hold references, because the numbers are hundreds of bytes a token. */
import { RoutingType } from "../../base/schema/log/token-numbers.ts";
import type { NodeBlob, Trajectory } from "../../base/schema/trajectory.ts";
import type { RowPiece } from "../selection/selection.ts";
import { routedExperts } from "../tree/routing-blobs.ts";
import type { FlatRow, RowRouting } from "./flat-row.ts";

/** The blobs of each node, in their order. */
export function routingByNode({ blobs }: Pick<Trajectory, "blobs">): Map<string, NodeBlob[]> {
  const routing = blobs.filter(({ name }) => name === routedExperts);
  return Map.groupBy(routing, ({ node_id }) => node_id);
}

/** Adds references to the row. A piece whose context differs from the engine's gets none: its tokens would take other experts. */
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

/**
 * Does each token of the row have its experts, without a hole? `alidade.routing` asks the same. The last token may have none: if it
 * was sampled, the engine computed nothing on it.
 */
export function isRouted({ routing = [], token_ids }: Pick<FlatRow, "routing" | "token_ids">): boolean {
  let end = 0;
  for (const { start, length } of routing) {
    if (start !== end) return false;
    end += length;
  }
  return routing.length > 0 && end >= token_ids.length - 1;
}
