/** A number that grows with each change. */
export type Waitable = {
  readonly version: number;
  /** Resolves with the version when it is another than `seen`; rejects with the signal's reason. */
  after(seen: number, signal: AbortSignal): Promise<number>;
};

/** Counts changes, and wakes the readers that wait for one. */
export class Changes implements Waitable {
  #version = 0;
  readonly #waiting = new Set<() => void>();

  get version(): number {
    return this.#version;
  }

  add(): void {
    this.#version += 1;
    for (const wake of [...this.#waiting]) wake();
  }

  after(seen: number, signal: AbortSignal): Promise<number> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#version !== seen) return Promise.resolve(this.#version);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const leave = (): void => {
      this.#waiting.delete(wake);
      signal.removeEventListener("abort", giveUp);
    };
    const wake = (): void => {
      leave();
      resolve(this.#version);
    };
    const giveUp = (): void => {
      leave();
      reject(signal.reason);
    };
    this.#waiting.add(wake);
    signal.addEventListener("abort", giveUp, { once: true });
    return promise;
  }
}
