/** Reads a request body within bounds of size and time. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { AlidadeError } from "../errors.ts";
import type { BodySeen } from "../schema/session-log.ts";

/** A context of a million tokens is about 8 MB of text; with images 64 MiB leaves room and bounds what a client can hold. */
const maxBodyBytes = 64 * 1024 * 1024;

/** The bytes of a request as they came, until it is a call: a refused one is written down by their number and hash. */
export class RequestBytes {
  readonly #incoming: IncomingMessage;
  #pieces: Buffer[] = [];
  #size = 0;
  #isWhole = false;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
  }

  /** All of them. Throws `request_invalid` (413) where there are too many, and when the client goes away in the middle of it. */
  async read(): Promise<readonly Buffer[]> {
    const declared = Number(this.#incoming.headers["content-length"] ?? 0);
    if (declared > maxBodyBytes) throw tooLarge(declared);
    // The connection stays, so that the refusal of a body that is too large can be read.
    for await (const piece of this.#incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      this.#size += piece.length;
      if (this.#size > maxBodyBytes) throw tooLarge(this.#size);
      this.#pieces.push(piece);
    }
    this.#isWhole = true;
    return this.#pieces;
  }

  /** It is a call now, or its answer is on its way: they are needed no more. */
  release(): void {
    this.#pieces = [];
    this.#isWhole = false;
  }

  /** What a record says of them. */
  async seen(): Promise<BodySeen> {
    const declared = Number(this.#incoming.headers["content-length"] ?? 0);
    return { bytes: Math.max(this.#size, declared), sha256: this.#isWhole ? await this.#hash() : null };
  }

  /** A little at a time: others wait for the thread that hashes. */
  async #hash(): Promise<string> {
    const hash = createHash("sha256");
    let hashed = 0;
    for (const piece of this.#pieces) {
      hash.update(piece);
      hashed += piece.length;
      if (hashed < hashedAtOnce) continue;
      hashed = 0;
      await nextTurn();
    }
    return hash.digest("hex");
  }
}

/** About a millisecond's. */
const hashedAtOnce = 1024 * 1024;

function tooLarge(size: number): AlidadeError {
  return new AlidadeError("request_invalid", `the request body has ${size} bytes or more; at most ${maxBodyBytes} are taken`, {
    status: 413,
    param: "body",
  });
}
