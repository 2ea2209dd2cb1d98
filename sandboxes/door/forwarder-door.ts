/**
 * The portable door: a forwarder inside carries connections over the standard input and output of one attached process.
 * It works with every backend that can attach a process.
 */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../base/errors.ts";
import { BoundedOutput } from "../../base/host/bounded-output.ts";
import type { Door } from "../sandbox.ts";
import { doorError, doorInside, doorPort, type OnConnection, openMs } from "./door-kind.ts";
import { forwarderFile } from "./door-pack.ts";
import { Multiplexer } from "./multiplexer.ts";

/** A process inside with its streams attached. Destroying `stream` lets go of it. */
export type AttachedProcess = {
  /** Written to: its standard input. */
  stream: Duplex;
  /** What it writes, until its stream ends. */
  output: AsyncIterable<{ stream: "stdout" | "stderr"; bytes: Buffer }>;
};

/** Starts the forwarder as another user, so that the agent can neither signal nor trace it. */
export type StartForwarder = (argv: string[], env: Record<string, string>, signal: AbortSignal) => Promise<AttachedProcess>;

const argv = [`${doorInside}/node`, "--disable-warning=ExperimentalWarning", `${doorInside}/${forwarderFile}`];
/** An image may set these; the forwarder is ours. */
const env = { NODE_OPTIONS: "", LD_PRELOAD: "", LD_LIBRARY_PATH: "", HOME: "/" };

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
      throw error;
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
    const attached = await this.#startProcess([...argv, String(this.#port)], env, this.#closed.signal);
    const { stream } = attached;
    this.#stream = stream;
    stream.on("error", () => {}); // its end says it too
    const ready = Promise.withResolvers<void>();
    const complaints = new BoundedOutput(2_000);
    const multiplexer = new Multiplexer(stream, { onReady: ready.resolve, onStream: this.#onConnection });
    let opened = false;
    this.#carrying = carry(attached, multiplexer, complaints).then(() => {
      ready.reject(new Error(complaints.toString().trim() || "the forwarder ended"));
      stream.destroy();
      if (opened && !this.#closed.signal.aborted && restarts < maxRestarts) void this.#restart(restarts + 1);
    });
    const late = sleep(openMs, undefined, { ref: false }).then(() =>
      ready.reject(new Error(`the forwarder did not listen within ${openMs} ms`)),
    );
    late.catch(() => {});
    try {
      await ready.promise;
      opened = true;
    } catch (error) {
      stream.destroy();
      throw doorError(error);
    }
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

/** Feeds what the forwarder sends until its stream ends, however it ends. */
async function carry({ output }: AttachedProcess, multiplexer: Multiplexer, complaints: BoundedOutput): Promise<void> {
  try {
    for await (const { stream, bytes } of output) {
      if (stream === "stderr") complaints.push(bytes);
      else multiplexer.feed(bytes);
    }
  } catch (error) {
    complaints.push(Buffer.from(messageOf(error)));
  } finally {
    multiplexer.close();
  }
}
