/** Names the tokens that the sampling kept at the places of a row's sampled tokens. Rows hold references, as they do for experts. */
import type { NodeBlob, Trajectory } from "../../base/schema/trajectory.ts";
import type { RowPiece } from "../selection/selection.ts";
import { samplingSupport } from "../tree/support-blobs.ts";
import type { FlatRow } from "./flat-row.ts";

export function supportByNode({ blobs }: Pick<Trajectory, "blobs">): Map<string, NodeBlob[]> {
  return Map.groupBy(
    blobs.filter(({ name }) => name === samplingSupport),
    ({ node_id }) => node_id,
  );
}

export function placeSupport(row: FlatRow, start: number, { from, to }: RowPiece, blobs: readonly NodeBlob[]): void {
  for (const { span, row: first = 0, ref, shape } of blobs) {
    const [begin, end] = [Math.max(span[0], from), Math.min(span[1], to)];
    const [rows] = shape;
    if (begin >= end || rows === undefined) continue;
    const one = { start: start + begin - from, length: end - begin, sha256: ref, row: first + begin - span[0], rows };
    row.support = [...(row.support ?? []), one];
  }
}
