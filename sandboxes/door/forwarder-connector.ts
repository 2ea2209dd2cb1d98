/**
 * Connects into a container of any engine. The forwarder inside makes the connections, and carries all of them over one
 * attached process.
 */
import { once } from "node:events";
import { AlidadeError } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { type Connector, connectMs } from "./connector.ts";
import { type RunningForwarder, type StartForwarder, startForwarder } from "./forwarder-process.ts";
import { type MultiplexedStream, maxStreams } from "./multiplexer.ts";

export class ForwarderConnector implements Connector {
  readonly #startProcess: StartForwarder;
  readonly #closed = new AbortController();
  #running: Promise<RunningForwarder> | null = null;

  constructor(start: StartForwarder) {
    this.#startProcess = start;
  }

  async connect(port: number, signal: AbortSignal): Promise<MultiplexedStream> {
    signal.throwIfAborted();
    if (this.#closed.signal.aborted) throw new AlidadeError("sandbox_died", "The sandbox is gone already.");
    this.#running ??= this.#start();
    const { multiplexer } = await untilAborted(this.#running, signal);
    const stream = multiplexer.open(port);
    if (stream === null) throw new Error(`there are ${maxStreams} connections already: close one`);
    try {
      await once(stream, "connect", { signal: AbortSignal.any([signal, AbortSignal.timeout(connectMs)]) });
      return stream;
    } catch (error) {
      stream.destroy();
      throw error;
    }
  }

  /** Starts the forwarder. If it ends or cannot start, the next connection starts it again. */
  async #start(): Promise<RunningForwarder> {
    const forget = (): void => {
      this.#running = null;
    };
    try {
      const running = await startForwarder(this.#startProcess, ["connect"], {}, this.#closed.signal);
      void running.ended.then(forget);
      return running;
    } catch (error) {
      forget();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    const running = await this.#running?.catch(() => null);
    running?.stream.end(); // the forwarder exits at the end of its input
    running?.stream.destroy();
    await running?.ended;
  }
}
