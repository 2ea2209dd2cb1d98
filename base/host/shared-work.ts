import { untilAborted } from "./until-aborted.ts";

type SharedRun<T> = { result: Promise<T>; stop: AbortController; waiting: number };

/**
 * Work that runs once for all callers that want it at the same time. An aborted caller leaves and the work goes on. When
 * the last caller leaves, the work is aborted, and that caller waits for its clean-up.
 */
export class SharedWork<T> {
  #running: SharedRun<T> | null = null;

  /** `begin` is called unless the work runs already. */
  async join(signal: AbortSignal, begin: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    // Work without waiting callers is not joined: it is about to fail.
    while (this.#running?.stop.signal.aborted)
      await untilAborted(
        this.#running.result.catch(() => undefined),
        signal,
      );
    this.#running ??= this.#begin(begin);
    const running = this.#running;
    const leave = new AbortController();
    const abort = (): void => {
      running.waiting -= 1;
      if (running.waiting > 0) leave.abort(signal.reason);
      else running.stop.abort(signal.reason);
    };
    running.waiting += 1;
    signal.addEventListener("abort", abort, { once: true });
    try {
      return await untilAborted(running.result, leave.signal);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  #begin(begin: (signal: AbortSignal) => Promise<T>): SharedRun<T> {
    const stop = new AbortController();
    const result = begin(stop.signal).finally(() => {
      this.#running = null;
    });
    return { result, stop, waiting: 0 };
  }
}
