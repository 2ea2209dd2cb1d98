/** Runs on the host and inside, so it imports nothing but Node. */
import type { Duplex } from "node:stream";

type Joined = Duplex & { destroySoon(): void; resetAndDestroy(): unknown };

/** Joins two connections: passes the bytes, the end and a reset of each to the other. `onBytes`: called when `one` has sent some. */
export function joinConnections(one: Joined, other: Joined, onBytes?: () => void): void {
  if (onBytes) one.on("data", onBytes);
  one.pipe(other).pipe(one);
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.resetAndDestroy());
    from.on("close", () => to.destroySoon());
  }
}
