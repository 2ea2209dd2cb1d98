/** The bytes of a request as they come, and until it is a call: a refused one is written down by their number and hash. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { Pace } from "../../base/host/pace.ts";
import type { BodySeen } from "../../base/schema/session-log.ts";

export type ReadLimits = {
  limit: number;
  /** How fast they may come; absent: as fast as they do. */
  pace?: Pace;
  /** After so long the connection is closed; absent or null: the server's own limit holds. */
  withinMs?: number | null;
};

export class RequestBytes {
  readonly #incoming: IncomingMessage;
  #pieces: Buffer[] = [];
  #size = 0;
  #isWhole = false;

  constructor(incoming: IncomingMessage) {
    this.#incoming = incoming;
  }

  /** As many as the client says there are; null where it does not say. */
  get declared(): number | null {
    const { "content-length": length, "transfer-encoding": encoding } = this.#incoming.headers;
    return length !== undefined ? Number(length) : encoding === undefined ? 0 : null;
  }

  /** Throws `request_invalid` (413) where more are declared. */
  assertAtMost(limit: number): void {
    if ((this.declared ?? 0) > limit) throw tooLarge(this.declared as number, limit);
  }

  /** How many have come. */
  get size(): number {
    return this.#size;
  }

  /** All of them. Throws as `pieces`. */
  async read(limits: ReadLimits): Promise<readonly Buffer[]> {
    for await (const piece of this.pieces(limits)) this.#pieces.push(piece);
    this.#isWhole = true;
    return this.#pieces;
  }

  /** Gives each piece when it arrives and keeps none. Throws `request_invalid` (413, 408), and if the client leaves too early. */
  async *pieces({ limit, pace, withinMs = null }: ReadLimits): AsyncGenerator<Buffer> {
    this.assertAtMost(limit);
    const late = withinMs === null ? undefined : setTimeout(() => this.#incoming.destroy(tooSlow(withinMs)), withinMs);
    try {
      // The connection stays, so that the refusal of a body that is too large can be read.
      for await (const piece of this.#incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        this.#size += piece.length;
        if (this.#size > limit) throw tooLarge(this.#size, limit);
        if (pace) await keepPace(pace, piece.length);
        yield piece;
      }
    } finally {
      clearTimeout(late);
    }
  }

  /** It is a call now, or was refused as too much: they are needed no more. */
  release(): void {
    this.#pieces = [];
    this.#isWhole = false;
  }

  /** What a record says of them. */
  async seen(): Promise<BodySeen> {
    return { bytes: Math.max(this.#size, this.declared ?? 0), sha256: this.#isWhole ? await this.#hash() : null };
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

/** A timer cannot wait for less; what is owed less is owed until more is. */
const shortestWaitMs = 4;

async function keepPace(pace: Pace, bytes: number): Promise<void> {
  const owed = pace.take(bytes);
  if (owed > shortestWaitMs) await sleep(owed);
}

/** A client that was answered before the end of its body is read for this long; it reads the answer meanwhile. */
const lastWordsMs = 5_000;

/** Reads what is left of an answered request and lets it go. */
export async function discard(incoming: IncomingMessage, pace: Pace): Promise<void> {
  const late = setTimeout(() => incoming.destroy(), lastWordsMs);
  try {
    for await (const piece of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) await keepPace(pace, piece.length);
  } catch {
    // It is gone.
  } finally {
    clearTimeout(late);
  }
}

function tooLarge(size: number, limit: number): AlidadeError {
  const message = `the request body has ${size} bytes or more; at most ${limit} are taken`;
  return new AlidadeError("request_invalid", message, { status: 413, param: "body" });
}

function tooSlow(ms: number): AlidadeError {
  return new AlidadeError("request_invalid", `the request body was not there after ${Math.round(ms)} ms`, { status: 408, param: "body" });
}
