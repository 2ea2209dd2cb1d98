/** Runs on the host and inside, so it imports nothing but Node. */
import type { Duplex } from "node:stream";

type Joined = Duplex & { destroySoon(): void; resetAndDestroy(): unknown };

/** Passes bytes, ends and resets of two connections on to each other. */
export function joinConnections(one: Joined, other: Joined): void {
  one.pipe(other).pipe(one);
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", () => to.resetAndDestroy());
    from.on("close", () => to.destroySoon());
  }
}
