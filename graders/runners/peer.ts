/**
 * One of two processes that call each other's functions: the tests, and the work. A call waits for its answer as a
 * call of a function does, and answers meanwhile what the other side asks (a callback). `may` says what the other side
 * may ask: the work may only call functions and await promises that the tests handed to it.
 */
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { decode, encode, type Held, type HeldKind } from "./values.ts";

type PeerMessage = { ask?: number; answer?: number; op?: string; of?: number; args?: unknown; value?: unknown; error?: unknown };

export type PeerOptions = {
  socket: string;
  role: "tests" | "work";
  /** What this side does for the other, by name. */
  ops: Map<string, (target: object | null, args: unknown[]) => unknown>;
  /** Makes the stand-in of a thing that stays there. */
  standIn: (peer: Peer, id: number, kind: HeldKind, name: string) => object;
  /**
   * Whether the other side's caller must not swallow an error: it is thrown here, where the call across began. `isAsked`:
   * there is such a call.
   */
  keepsBack?: (error: unknown, isAsked: boolean) => boolean;
  /** Called before a thing of this side crosses. */
  mayExport?: (value: object, kind: HeldKind) => void;
  closed: () => void;
};

/** Longer pauses than this never happen: each line wakes the reader. A lost wake-up costs no more. */
const longestPauseMs = 1_000;

export class Peer {
  readonly #options: PeerOptions;
  readonly #port: MessageChannel["port1"];
  readonly #count = new Int32Array(new SharedArrayBuffer(4));
  readonly #own: object[] = [];
  readonly #numbers = new Map<object, number>();
  readonly #theirs = new Map<number, object>();
  readonly #ids = new WeakMap<object, number>();
  readonly #answers = new Map<number, PeerMessage>();
  readonly #waiting = new Map<number, (message: PeerMessage) => void>();
  readonly #held: Held;
  #asked = 0;
  #asking = 0;
  #keptBack: { error: unknown } | null = null;
  #closed = false;

  constructor(options: PeerOptions) {
    this.#options = options;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
    const workerData = { path: options.socket, role: options.role, port: port2, count: this.#count };
    new Worker(new URL(`./line-thread${extension}`, import.meta.url), { workerData, transferList: [port2] }).unref();
    port1.on("message", (line: string | null) => this.#take(line));
    // Tests end when nothing runs any more; work that is asked nothing goes on to listen.
    if (options.role === "tests") port1.unref();
    this.#held = {
      export: (value, kind) => this.#export(value, kind),
      import: (id, kind, name) => this.#import(id, kind, name),
      idOf: (value) => this.#ids.get(value) ?? null,
      own: (id) => {
        const found = this.#own[id];
        if (found === undefined) throw new TypeError("the other process named a thing that it was not given");
        return found;
      },
    };
  }

  /** Asks and waits. Throws what the other side threw, or what was kept back from it. */
  ask(op: string, of: number | null, ...args: unknown[]): unknown {
    this.#asking += 1;
    let message: PeerMessage;
    try {
      message = this.#awaitAnswer(this.#send(op, of, args));
    } finally {
      this.#asking -= 1;
    }
    const kept = this.#keptBack;
    this.#keptBack = null;
    if (kept) throw kept.error;
    return this.#valueOf(message);
  }

  #awaitAnswer(number: number): PeerMessage {
    let message = this.#answers.get(number);
    while (message === undefined) {
      if (this.#closed) throw new Error("the process of the work has ended");
      const seen = Atomics.load(this.#count, 0);
      const received = receiveMessageOnPort(this.#port) as { message: string | null } | undefined;
      if (received) this.#take(received.message);
      else Atomics.wait(this.#count, 0, seen, longestPauseMs);
      message = this.#answers.get(number);
    }
    this.#answers.delete(number);
    return message;
  }

  /** Asks and goes on. */
  async later(op: string, of: number | null, ...args: unknown[]): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<PeerMessage>();
    const number = this.#send(op, of, args);
    if (this.#closed) reject(new Error("the process of the work has ended"));
    this.#waiting.set(number, resolve);
    this.#port.ref();
    try {
      return this.#valueOf(await promise);
    } finally {
      this.#waiting.delete(number);
      if (this.#waiting.size === 0 && this.#options.role === "tests") this.#port.unref();
    }
  }

  #send(op: string, of: number | null, args: unknown[]): number {
    this.#asked += 1;
    this.#port.postMessage(JSON.stringify({ ask: this.#asked, op, ...(of !== null && { of }), args: encode(args, this.#held) }));
    return this.#asked;
  }

  #take(line: string | null): void {
    if (line === null) {
      this.#closed = true;
      for (const resolve of this.#waiting.values()) resolve({ error: encode(new Error("the process of the work has ended"), this.#held) });
      this.#options.closed();
      return;
    }
    const message = parse(line);
    if (message?.answer !== undefined) {
      const resolve = this.#waiting.get(message.answer);
      if (resolve) resolve(message);
      else this.#answers.set(message.answer, message);
    } else if (message?.ask !== undefined) this.#answer(message);
  }

  #answer({ ask, op = "", of, args }: PeerMessage): void {
    const reply = (field: "value" | "error", value: unknown) => {
      let text: string;
      try {
        text = JSON.stringify({ answer: ask, [field]: encode(value, this.#held) });
      } catch (error) {
        text = JSON.stringify({ answer: ask, error: encode(new TypeError(String(error)), this.#held) });
      }
      this.#port.postMessage(text);
    };
    const fail = (error: unknown) => {
      const isKept = this.#options.keepsBack?.(error, this.#asking > 0) === true;
      if (isKept) this.#keptBack ??= { error };
      reply("error", isKept ? new Error("a function of the other process failed") : error);
    };
    try {
      const does = this.#options.ops.get(op);
      if (!does) throw new TypeError(`the other process may not ask for ${op.slice(0, 40)}`);
      const done = does(of === undefined ? null : this.#held.own(of), this.#decode(args) as unknown[]);
      if (op === "await" || op === "import") Promise.resolve(done).then((value) => reply("value", value), fail);
      else reply("value", done);
    } catch (error) {
      fail(error);
    }
  }

  #valueOf(message: PeerMessage): unknown {
    if (Object.hasOwn(message, "error")) throw this.#decode(message.error);
    return this.#decode(message.value);
  }

  #decode(wire: unknown): unknown {
    return decode(wire, this.#held, (error, id) => this.#ids.set(error, id));
  }

  #export(value: object, kind: HeldKind): number {
    this.#options.mayExport?.(value, kind);
    const known = this.#numbers.get(value);
    if (known !== undefined) return known;
    this.#numbers.set(value, this.#own.length);
    return this.#own.push(value) - 1;
  }

  #import(id: number, kind: HeldKind, name: string): object {
    const known = this.#theirs.get(id);
    if (known !== undefined) return known;
    const made = this.#options.standIn(this, id, kind, name);
    this.#theirs.set(id, made);
    this.#ids.set(made, id);
    return made;
  }
}

function parse(line: string): PeerMessage | null {
  try {
    const value: unknown = JSON.parse(line);
    return value !== null && typeof value === "object" ? (value as PeerMessage) : null;
  } catch {
    return null;
  }
}
