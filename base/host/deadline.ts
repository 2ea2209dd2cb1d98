/**
 * A signal that fires after a time, unless its scope ends before. `AbortSignal.timeout` that has listeners stays in memory
 * until its time is over, also when nothing waits for it any more: minutes for each rollout that took a second.
 *
 *     using limit = new Deadline(60_000);
 *     await work(AbortSignal.any([signal, limit.signal]));
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(milliseconds: number) {
    const late = () => this.#controller.abort(new DOMException(`it took longer than ${milliseconds} ms`, "TimeoutError"));
    this.#timer = setTimeout(late, milliseconds).unref();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
