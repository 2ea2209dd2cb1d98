/**
 * The portable door: a forwarder inside carries connections over the standard input and output of one attached process.
 * It works with every backend that can attach a process.
 */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { Door } from "../sandbox.ts";
import { doorError, doorPort, type OnConnection } from "./door-kind.ts";
import { type StartForwarder, startForwarder } from "./forwarder-process.ts";
import type { MultiplexedStream } from "./multiplexer.ts";

/** A forwarder that was killed (memory ran out) is started again, so that the policy sees its own fault and not ours. */
const maxRestarts = 5;

export class ForwarderDoor implements Door {
  readonly url: string;
  readonly #port: number;
  readonly #startProcess: StartForwarder;
  readonly #onConnection: OnConnection;
  readonly #closed = new AbortController();
  #stream: Duplex | null = null;
  #carrying: Promise<void> = Promise.resolve();

  private constructor(start: StartForwarder, onConnection: OnConnection, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.#port = port;
    this.#startProcess = start;
    this.#onConnection = onConnection;
  }

  static async open(start: StartForwarder, onConnection: OnConnection, port = doorPort): Promise<ForwarderDoor> {
    const door = new ForwarderDoor(start, onConnection, port);
    try {
      await door.#start(0);
      return door;
    } catch (error) {
      await door[Symbol.asyncDispose]();
      throw error instanceof AlidadeError ? error : doorError(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#stream?.end(); // end of input: the forwarder leaves
    this.#stream?.destroy();
    await this.#carrying;
  }

  /** Resolves when the forwarder listens. */
  async #start(restarts: number): Promise<void> {
    const events = { onStream: (stream: MultiplexedStream) => this.#onConnection(stream) };
    const running = await startForwarder(this.#startProcess, ["listen", String(this.#port)], events, this.#closed.signal);
    this.#stream = running.stream;
    this.#carrying = running.ended.then(() => {
      if (!this.#closed.signal.aborted && restarts < maxRestarts) void this.#restart(restarts + 1);
    });
  }

  async #restart(restarts: number): Promise<void> {
    try {
      await sleep(100 * restarts, undefined, { signal: this.#closed.signal });
      await this.#start(restarts);
    } catch {
      // The container is gone, or cannot start a process any more: its next command says so.
    }
  }
}
