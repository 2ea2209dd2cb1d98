/**
 * Names the experts that a row's tokens took, as `flat` does: `routing [{start, length, sha256, row, layers, top_k, dtype}]`, where
 * `start` counts from the row's first token. The bytes lie in `media/` beside the file. Rows do not hold
 * the numbers, which take hundreds of bytes a token. The loaders (clients/python) read them into the trainer's own field.
 */
import type { FlatRow } from "../../reconstruct/index.ts";

type Routed = Pick<FlatRow, "routing">;

/** Fields to spread into a format's row; {} if the row names no experts. */
export function routingOf({ routing }: Routed): Routed {
  return routing === undefined || routing.length === 0 ? {} : { routing };
}

/** As `routingOf`, for a row that is cut after its first `length` tokens. */
export function routingUpTo({ routing = [] }: Routed, length: number): Routed {
  const kept = routing.filter(({ start }) => start < length);
  return routingOf({ routing: kept.map((part) => ({ ...part, length: Math.min(part.length, length - part.start) })) });
}
