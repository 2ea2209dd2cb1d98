/**
 * Bodies as values. What is small, or stood nearly whole in an earlier body, is read at once; what is large and new is
 * read on another thread, where it delays no other session, and one of each session at a time.
 */
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { AlidadeError, type ErrorCode } from "../../base/errors.ts";
import { type GrowingJson, type ReadBody, readWhole } from "../../base/wire/growing-json.ts";
import { withJoined } from "../../base/wire/joined.ts";
import type { Session } from "../session/session.ts";
import { FairShare } from "./fair-share.ts";
import type { Gate } from "./gate.ts";

/** A first prompt with its tools is smaller. To read so much takes about two milliseconds, as long as to hand it over and back. */
const largeBytes = 256 * 1024;

export type Question = { id: number; bytes: ArrayBuffer; field: string; keys: readonly string[] | undefined };
export type ReadAnswer = {
  id: number;
  bytes: ArrayBuffer;
  /** Null: the body is valid; the caller parses it. */
  read?: ReadBody | null;
  error?: { code: ErrorCode; message: string; status: number; param: string | null };
};

/** Where a body's conversation stands (`GrowingJson.parse`). */
export type BodyShape = { bodies: GrowingJson; field: string; keys?: readonly string[] | undefined };

type Waiting = { resolve(answer: ReadAnswer): void; reject(error: Error): void };

export class BodyReader implements AsyncDisposable {
  readonly #gate: Gate;
  readonly #turns = new FairShare<Session>(1, () => 1);
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #requests = 0;

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** The value of a body. Throws what `parseJson` throws, and what `Gate.bring` throws of what is new in it. */
  async read(session: Session, pieces: readonly Buffer[], shape: BodyShape, signal: AbortSignal): Promise<unknown> {
    const { bodies, field, keys } = shape;
    const mostValues = (bytes: number): number => this.#gate.mostNewValues(session, bytes);
    const brought = withJoined(pieces, (bytes) => bodies.broughtBy(bytes, field, keys, mostValues));
    await this.#gate.bring(session, brought, signal);
    // What is mostly known goes on from what is known: its messages stay the objects that they were.
    if (brought.bytes > largeBytes && brought.parsed > brought.allBytes / 2)
      return this.#readLarge(session, pieces, shape, brought.allValues, signal);
    return withJoined(pieces, (bytes) => bodies.parse(bytes, field, keys, brought.allValues));
  }

  /** On the other thread; one of each session at a time, and the sessions in turn. */
  async #readLarge(session: Session, pieces: readonly Buffer[], shape: BodyShape, values: number, signal: AbortSignal): Promise<unknown> {
    const end = this.#turns.takeNow(session, 1) ?? (await this.#turns.take(session, 1, signal));
    try {
      const { bodies, field, keys } = shape;
      // A buffer of this size has its memory to itself.
      const bytes = Buffer.concat(pieces).buffer as ArrayBuffer;
      const { read, error, bytes: back } = await this.#ask({ bytes, field, keys });
      if (error) throw new AlidadeError(error.code, error.message, { status: error.status, param: error.param });
      await this.#gate.turn(session, signal);
      const body = Buffer.from(back);
      const whole = read ?? readWhole(body, field, keys);
      return bodies.keepRead(body, field, keys, whole, values);
    } finally {
      end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate();
  }

  #ask(question: Omit<Question, "id">): Promise<ReadAnswer> {
    const id = this.#requests++;
    this.#worker ??= this.#start();
    const answer = new Promise<ReadAnswer>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#worker.postMessage({ id, ...question } satisfies Question, [question.bytes]);
    return answer;
  }

  #start(): Worker {
    const file = new URL(`./body-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
    const worker = new Worker(file, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: 512 } });
    worker.unref();
    worker.on("message", (answer: ReadAnswer) => {
      this.#waiting.get(answer.id)?.resolve(answer);
      this.#waiting.delete(answer.id);
    });
    worker.on("error", (cause) => this.#lost(worker, cause));
    worker.on("exit", () => this.#lost(worker, new Error("the thread ended")));
    return worker;
  }

  /** It ran out of memory, most likely: the next body gets a new one. */
  #lost(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    const error = new AlidadeError("request_invalid", "The body could not be read: it takes too much memory.", { status: 413, cause });
    for (const { reject } of waiting) reject(error);
  }
}
