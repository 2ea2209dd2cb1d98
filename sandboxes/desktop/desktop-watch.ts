/**
 * Shows the screen of a sandbox to an operator. A program in the service takes the pictures. The first look starts the program,
 * and it ends 15 seconds after the last look. It gets at most one request a second, and none before its last answer.
 */
import type { Duplex } from "node:stream";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { readPicture } from "../../base/media/read-picture.ts";
import { doorInside } from "../door/door-kind.ts";
import type { Sandbox } from "../sandbox.ts";
import { frameProgram } from "./desktop-pack.ts";

const restMs = 1_000;
/** An idle program is ended after this time, because it takes memory of the service. */
const idleMs = 15_000;
/** Long, because a machine at its limit takes seconds to start a program. */
const answerMs = 20_000;
/** The largest screen has 7 MB of pixels. As PNG they are hardly larger. */
const mostBytes = 8 * 1024 * 1024;
/** A PNG of a few bytes can hold a picture that fills a browser's memory. */
const mostPixels = 2 ** 21;
const lengthBytes = 4;

export class DesktopWatch implements AsyncDisposable {
  readonly #sandbox: Pick<Sandbox, "start">;
  readonly #service: string;
  readonly #clock: () => number;
  readonly #over = new AbortController();
  #frames: FrameStream | null = null;
  #last: Promise<Buffer> | null = null;
  #isTaking = false;
  #takenAt = Number.NEGATIVE_INFINITY;
  #idle: NodeJS.Timeout | undefined;

  /** `clock`: milliseconds, for tests. */
  constructor(sandbox: Pick<Sandbox, "start">, service: string, clock = () => performance.now()) {
    this.#sandbox = sandbox;
    this.#service = service;
    this.#clock = clock;
  }

  /** Returns the picture as PNG. Throws `sandbox_error` if none comes. */
  frame(): Promise<Buffer> {
    if (this.#last === null || (!this.#isTaking && this.#clock() - this.#takenAt >= restMs)) this.#last = this.#take();
    return this.#last;
  }

  async #take(): Promise<Buffer> {
    this.#isTaking = true;
    this.#takenAt = this.#clock();
    clearTimeout(this.#idle);
    const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(answerMs)]);
    try {
      signal.throwIfAborted();
      this.#frames ??= await this.#start(signal);
      return await untilAborted(this.#frames.next(), signal);
    } catch (error) {
      this.#close();
      throw new AlidadeError("sandbox_error", `the screen of service "${this.#service}" shows no picture: ${messageOf(error)}`, {
        cause: error,
      });
    } finally {
      this.#isTaking = false;
      this.#idle = setTimeout(() => this.#close(), idleMs).unref();
    }
  }

  /** Starts the program. If `signal` fires first, the program is ended when it has started. */
  async #start(signal: AbortSignal): Promise<FrameStream> {
    const starting = this.#sandbox.start(this.#service, [`${doorInside}/node`, frameProgram], this.#over.signal);
    try {
      return new FrameStream(await untilAborted(starting, signal));
    } catch (error) {
      starting.then(
        (late) => late.destroy(),
        () => undefined,
      );
      throw error;
    }
  }

  #close(): void {
    clearTimeout(this.#idle);
    this.#frames?.close();
    this.#frames = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(new AlidadeError("cancelled", "the rollout's sandbox is gone"));
    this.#close();
  }
}

/** Reads pictures one by one. Does not trust the service: limits the size of a picture, and refuses an unasked one. */
class FrameStream {
  readonly #stream: Duplex;
  readonly #pieces: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: Duplex) {
    this.#stream = stream;
    stream.on("error", () => undefined); // reading reports it too
    this.#pieces = (stream as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  }

  async next(): Promise<Buffer> {
    if (this.#rest.length > 0) throw new Error("it sent a picture unasked");
    this.#stream.write("\n");
    const length = (await this.#read(lengthBytes)).readUInt32BE(0);
    if (length > mostBytes) throw new Error(`a picture of ${length} bytes is larger than any screen`);
    const picture = await this.#read(length);
    const facts = readPicture(picture);
    if (facts?.kind !== "image/png") throw new Error("what it sent is no picture");
    if (facts.width * facts.height > mostPixels) throw new Error(`${facts.width}×${facts.height} is larger than any screen`);
    return picture;
  }

  async #read(bytes: number): Promise<Buffer> {
    const pieces = [this.#rest];
    for (let have = this.#rest.length; have < bytes; ) {
      const { value, done } = await this.#pieces.next();
      if (done) throw new Error("its program ended");
      pieces.push(value);
      have += value.length;
    }
    const all = Buffer.concat(pieces);
    this.#rest = all.subarray(bytes);
    return all.subarray(0, bytes);
  }

  close(): void {
    this.#stream.destroy();
  }
}
