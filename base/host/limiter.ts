/** Lets `max` bodies run at once; the others wait in line. */
export class Limiter {
  readonly #max: number;
  #active = 0;
  readonly #line = new Set<() => void>();

  constructor(max: number) {
    this.#max = max;
  }

  get counters(): { active: number; waiting: number } {
    return { active: this.#active, waiting: this.#line.size };
  }

  async run<T>(signal: AbortSignal | undefined, body: () => Promise<T>): Promise<T> {
    const leave = await this.enter(signal);
    try {
      return await body();
    } finally {
      leave();
    }
  }

  /** Resolves when there is a place, with what gives it back (once; a second time does nothing). */
  async enter(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#active < this.#max) this.#active += 1;
    else await this.#turn(signal);
    let inside = true;
    return () => {
      if (inside) this.#leave();
      inside = false;
    };
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#line.delete(enter);
        reject(signal?.reason);
      };
      this.#line.add(enter);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** The place goes straight to the next in line; a new caller cannot overtake it. */
  #leave(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#active -= 1;
      return;
    }
    this.#line.delete(next);
    next();
  }
}
