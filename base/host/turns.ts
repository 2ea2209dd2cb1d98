/** Works of one thread that hold up its event loop, and let it go on in between. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** A work begins at once when the last turn of the loop is no longer ago. Milliseconds; a proxy in the same process waits as long. */
const mostMs = 5;

export class Turns {
  #last = Number.NEGATIVE_INFINITY;

  /** Before each work. */
  async take(): Promise<void> {
    if (performance.now() - this.#last < mostMs) return;
    await nextTurn();
    this.#last = performance.now();
  }
}
