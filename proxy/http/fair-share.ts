/**
 * Shares an amount among sessions: each holds at most its own share, and of those that wait the sessions come in turn,
 * one request of each, so that a session with a long line waits for itself.
 */
type Waiter = { amount: number; enter: () => void };

export class FairShare<Key> {
  #free: number;
  readonly #shareOf: (key: Key) => number;
  readonly #held = new Map<Key, number>();
  /** The waiting sessions; the next one comes first. */
  readonly #lines = new Map<Key, Set<Waiter>>();

  constructor(total: number, shareOf: (key: Key) => number) {
    this.#free = total;
    this.#shareOf = shareOf;
  }

  /** What gives it back, once; null where it would have to be waited for. More than a whole share is taken as one. */
  takeNow(key: Key, wanted: number): (() => void) | null {
    const amount = Math.min(wanted, this.#shareOf(key));
    if (this.#lines.size > 0 || !this.#fits(key, amount)) return null;
    this.#grant(key, amount);
    return this.#release(key, amount);
  }

  /** The same when there is room for it. Rejects with the signal's reason. */
  async take(key: Key, wanted: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const amount = Math.min(wanted, this.#shareOf(key));
    await this.#turn(key, amount, signal);
    return this.#release(key, amount);
  }

  #release(key: Key, amount: number): () => void {
    let isHeld = true;
    return () => {
      if (isHeld) this.#giveBack(key, amount);
      isHeld = false;
    };
  }

  async #turn(key: Key, amount: number, signal: AbortSignal): Promise<void> {
    const state = { isIn: false };
    // A promise and no signal of its own: most requests wait here, and joined signals cost each of them 70 µs.
    const over = Promise.withResolvers<void>();
    const enter = () => {
      state.isIn = true;
      over.resolve();
    };
    const waiter = { amount, enter };
    const line = this.#lines.get(key) ?? new Set();
    this.#lines.set(key, line.add(waiter));
    this.#serve();
    if (state.isIn) return;
    const leave = () => over.resolve();
    signal.addEventListener("abort", leave, { once: true });
    await over.promise;
    signal.removeEventListener("abort", leave);
    if (state.isIn) return;
    line.delete(waiter);
    if (line.size === 0) this.#lines.delete(key);
    this.#serve();
    signal.throwIfAborted();
  }

  #fits(key: Key, amount: number): boolean {
    return amount <= this.#free && (this.#held.get(key) ?? 0) + amount <= this.#shareOf(key);
  }

  #grant(key: Key, amount: number): void {
    this.#free -= amount;
    this.#held.set(key, (this.#held.get(key) ?? 0) + amount);
  }

  #giveBack(key: Key, amount: number): void {
    this.#free += amount;
    const left = (this.#held.get(key) ?? 0) - amount;
    if (left > 0) this.#held.set(key, left);
    else this.#held.delete(key);
    this.#serve();
  }

  /** Admits one waiter of each key in turn. A large one for which there is no room yet blocks smaller ones, so it cannot starve. */
  #serve(): void {
    let isDone = false;
    while (!isDone) {
      isDone = true;
      for (const [key, line] of [...this.#lines]) {
        const [waiter] = line as Set<Waiter>;
        if (!waiter) continue;
        if (this.#fits(key, waiter.amount)) {
          this.#enter(key, line, waiter);
          isDone = false;
        } else if (waiter.amount > this.#free) return;
      }
    }
  }

  #enter(key: Key, line: Set<Waiter>, waiter: Waiter): void {
    this.#grant(key, waiter.amount);
    line.delete(waiter);
    // The key goes behind all others that wait.
    this.#lines.delete(key);
    if (line.size > 0) this.#lines.set(key, line);
    waiter.enter();
  }
}
