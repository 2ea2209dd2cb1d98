/**
 * Names the experts that a row's tokens took, as `flat` does: `routing [{start, length, sha256, row, layers, top_k, dtype}]`, where
 * `start` counts from the row's first token. The bytes lie in `media/` beside the file. The loaders (clients/python) make the
 * trainer's own field of them, because the numbers are hundreds of bytes a token.
 */
import type { FlatRow } from "../../reconstruct/index.ts";

type Routed = Pick<FlatRow, "routing">;

/** Fields to spread into a format's row; {} if the row names no experts. */
export function routingOf({ routing }: Routed): Routed {
  return routing === undefined || routing.length === 0 ? {} : { routing };
}

/** For formats that cut rows: names the experts of the first `length` tokens. */
export function routingUpTo({ routing = [] }: Routed, length: number): Routed {
  const kept = routing.filter(({ start }) => start < length);
  return routingOf({ routing: kept.map((part) => ({ ...part, length: Math.min(part.length, length - part.start) })) });
}
