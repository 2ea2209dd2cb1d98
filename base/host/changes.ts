/** A number that grows with each change. */
export type Waitable = {
  readonly version: number;
  /** Resolves with the version when it is another than `seen`; rejects with the signal's reason. */
  after(seen: number, signal: AbortSignal): Promise<number>;
};

/** Counts changes, and wakes the readers that wait for one. */
export class Changes implements Waitable {
  #version = 0;
  /** With the one thing that each of them waits for; undefined: any. */
  readonly #waiting = new Map<() => void, string | undefined>();

  get version(): number {
    return this.#version;
  }

  /** `what`: the things that have changed; all of them where left out. */
  add(what?: ReadonlySet<string>): void {
    this.#version += 1;
    for (const [wake, one] of [...this.#waiting]) if (what === undefined || one === undefined || what.has(one)) wake();
  }

  /** `one`: a wait is not ended by changes of other things alone. */
  after(seen: number, signal: AbortSignal, one?: string): Promise<number> {
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
    this.#waiting.set(wake, one);
    signal.addEventListener("abort", giveUp, { once: true });
    return promise;
  }
}
