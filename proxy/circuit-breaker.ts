/**
 * Whether an engine is well, from what became of the calls sent to it. A streak of failures opens the breaker; while it
 * is open calls prefer other engines. When the engine is seen alive again one call may try it (half open): its success
 * closes the breaker, its failure opens it for twice as long.
 */

/** One failure may be chance (a socket that was closed, a crash of one request); three in a row are the engine. */
const failuresToOpen = 3;
/** A restart of an engine takes seconds at the least; asking sooner finds it down again. */
const firstRestMs = 1_000;
const longestRestMs = 30_000;

export class CircuitBreaker {
  #failures = 0;
  #restMs = firstRestMs;
  #state: "closed" | "open" | "half_open" = "closed";
  /** The one call that tries an engine which is half open. */
  #trial: object | null = null;

  get state(): "closed" | "open" | "half_open" {
    return this.#state;
  }

  /** Milliseconds until somebody should look whether the engine is alive. */
  get restMs(): number {
    return this.#restMs;
  }

  /** May a call be sent that could go elsewhere? */
  get isWelcoming(): boolean {
    return this.#state === "closed" || (this.#state === "half_open" && this.#trial === null);
  }

  began(call: object): void {
    if (this.#state === "half_open") this.#trial ??= call;
  }

  /** Ended with nothing that says how the engine is: it was cancelled, or never sent. */
  ended(call: object): void {
    if (this.#trial === call) this.#trial = null;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#restMs = firstRestMs;
    this.#trial = null;
    this.#state = "closed";
  }

  /** True when this failure opened the breaker. */
  failed(): boolean {
    this.#failures++;
    this.#trial = null;
    if (this.#state === "open" || (this.#state === "closed" && this.#failures < failuresToOpen)) return false;
    if (this.#state === "half_open") this.#restMs = Math.min(2 * this.#restMs, longestRestMs);
    this.#state = "open";
    return true;
  }

  /** It was asked and answers again. */
  seenAlive(): void {
    if (this.#state === "open") this.#state = "half_open";
  }
}
