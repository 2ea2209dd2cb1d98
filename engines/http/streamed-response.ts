/**
 * A response as the socket's reads. undici's own body is a Node stream: every HTTP chunk (for a model server, every token)
 * would pass its queue alone.
 *
 * There is no back-pressure: the sampler reads as fast as the engine writes and never waits for a client.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";

/** The last bytes of a body come with what ended its content, or right after it. */
const restOfBodyMs = 1_000;

/** What waits for it runs as a microtask; `queueMicrotask` makes a context of its own for each, which costs more than a token. */
const afterThis = Promise.resolve();

export class StreamedResponse implements Dispatcher.DispatchHandler {
  /** The status, when the headers are there. Rejects when there will be none. */
  readonly status: Promise<number>;
  /** Empty until the status is there. */
  headers: IncomingHttpHeaders = {};
  /** False until a connection is there and the request is handed to it: as long as that no byte can have left. */
  isSent = false;
  readonly #signal: AbortSignal;
  #controller: Dispatcher.DispatchController | null = null;
  #started: (status: number) => void = () => undefined;
  #failed: (error: unknown) => void = () => undefined;
  #chunks: Buffer[] = [];
  #reader: Reader | null = null;
  #isOver = false;
  #failure: { error: unknown } | null = null;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    this.status = new Promise((resolve, reject) => {
      this.#started = resolve;
      this.#failed = reject;
    });
    // It is awaited, but maybe only after it was rejected.
    this.status.catch(() => undefined);
    if (signal.aborted) this.#fail(signal.reason);
    else signal.addEventListener("abort", this.#onAbort);
  }

  /**
   * Gives the body to `take`, one socket read at a time, until `take` returns true or the body ends. Rejects when the body
   * breaks off, and with what `take` throws. After an early end the caller decides what to do with the rest.
   */
  read(take: (chunks: Buffer[]) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reader = { take, resolve, reject };
      this.#handOver();
    });
  }

  /** The body as text; of one that is longer than `enough` bytes its beginning, and the rest is given up. */
  async text(enough = Number.POSITIVE_INFINITY): Promise<string> {
    const all: Buffer[] = [];
    let size = 0;
    await this.read((chunks) => {
      all.push(...chunks);
      for (const { length } of chunks) size += length;
      return size > enough;
    });
    if (size > enough) this.abandon();
    return Buffer.concat(all).toString("utf8");
  }

  /** Gives the request up; nothing to do for one that is over. */
  abandon(reason: unknown = new Error("the rest of the answer was not wanted")): void {
    if (!this.#isOver) this.#fail(reason);
  }

  /** Leaves the rest of a body unread, and its connection in use: for what comes behind the last thing of interest. */
  skipRest(): void {
    this.#chunks = [];
    if (this.#isOver) return;
    const timer = setTimeout(() => this.abandon(), restOfBodyMs);
    const over = (): void => clearTimeout(timer);
    this.#reader = { take: () => false, resolve: over, reject: over };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.isSent = this.#failure === null;
    if (this.#failure) controller.abort(toError(this.#failure.error));
  }

  onResponseStart(controller: Dispatcher.DispatchController, statusCode: number, headers: IncomingHttpHeaders): void {
    if (statusCode < 200) return;
    // Cut out of the first read of the socket, with the whole prompt in it, and kept until the body is over.
    controller.rawHeaders = null;
    this.headers = headers;
    this.#started(statusCode);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // A read of the socket brings one chunk of HTTP after the other, and a microtask comes behind all of them.
    if (this.#chunks.push(chunk) === 1) void afterThis.then(this.#handOver);
  }

  onResponseEnd(): void {
    this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#failure ??= { error };
    this.#failed(error);
    this.#end();
  }

  readonly #onAbort = (): void => this.#fail(this.#signal.reason);

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#failed(error);
    this.#end();
    this.#controller?.abort(toError(error));
  }

  #end(): void {
    this.#isOver = true;
    this.#signal.removeEventListener("abort", this.#onAbort);
    void afterThis.then(this.#handOver);
  }

  readonly #handOver = (): void => {
    const reader = this.#reader;
    if (!reader) return;
    try {
      const chunks = this.#chunks;
      this.#chunks = [];
      const isEnough = chunks.length > 0 && reader.take(chunks);
      if (!isEnough && !this.#isOver) return;
      if (!isEnough && this.#failure) throw this.#failure.error;
      reader.resolve();
    } catch (error) {
      reader.reject(error);
    }
    this.#reader = null;
  };
}

type Reader = { take: (chunks: Buffer[]) => boolean; resolve: () => void; reject: (error: unknown) => void };

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
