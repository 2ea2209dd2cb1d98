/**
 * Bounds on what each token of a service uses of the machine. Each token has a share of its own, so that none can stop the service
 * for all. What it asks beyond its share is refused, or waits without being read, and costs the others nothing.
 */
import { AlidadeError } from "../../base/errors.ts";
import { FairShare } from "../../proxy/http/index.ts";
import type { AccessToken } from "../access.ts";

const mebibyte = 1024 * 1024;

/** Streams of results: each wakes for each change of its set, and holds a page of lines. */
const eventStreams = 100;
/** Requests that wait for a result: each is a connection of 40 kB, and so many look at a ledger in a file for 200 ms after a change. */
const openPolls = 1_024;
/**
 * Bodies that are large, on their way in and until they are answered. In memory they are parsed, checked and written, which takes
 * some times as much: more at once would take a gigabyte. A larger one comes alone.
 */
const largeBytes = 64 * mebibyte;
/** Bodies of up to this size do not wait behind large ones: a cursor, a policy's name, some groups. */
const smallBody = 256 * 1024;
const smallBytes = 32 * mebibyte;
/** As long as a client waits for an answer without a doubt. */
const defaultPatienceMs = 30_000;

/** What gives the place back, once. */
export type Leave = () => void;

export class ServiceBounds {
  readonly #streams: number;
  readonly #polls: number;
  readonly #openStreams: FairShare<AccessToken>;
  readonly #openPolls: FairShare<AccessToken>;
  readonly #large: FairShare<AccessToken>;
  readonly #small: FairShare<AccessToken>;

  readonly #patienceMs: number;

  /** `tokens`: how many share the service. */
  constructor(tokens: number, patienceMs = defaultPatienceMs) {
    this.#patienceMs = patienceMs;
    // What is held for hours is divided evenly. Of what passes in seconds a token may have half, or all where it is alone.
    this.#streams = evenShare(eventStreams, tokens);
    this.#polls = evenShare(openPolls, tokens);
    const part = tokens > 1 ? 2 : 1;
    this.#openStreams = new FairShare(Number.POSITIVE_INFINITY, () => this.#streams);
    this.#openPolls = new FairShare(Number.POSITIVE_INFINITY, () => this.#polls);
    this.#large = new FairShare(largeBytes, () => largeBytes / part);
    this.#small = new FairShare(smallBytes, () => smallBytes / part);
  }

  /** A place for a stream. Throws `too_many_requests`. */
  stream(token: AccessToken): Leave {
    const leave = this.#openStreams.takeNow(token, 1);
    if (leave !== null) return leave;
    const message = `${this.#streams} streams of results are open with this token, which is its share of ${eventStreams}: end one, or ask without events`;
    throw new AlidadeError("too_many_requests", message, { param: "event_streams", retryAfterSeconds: 5 });
  }

  /** A place for a request that waits. Throws `too_many_requests`. */
  poll(token: AccessToken): Leave {
    const leave = this.#openPolls.takeNow(token, 1);
    if (leave !== null) return leave;
    const message = `${this.#polls} requests of this token wait for results, which is its share of ${openPolls}: ask for many results by one (GET /sets/:id/results), or with wait=0`;
    throw new AlidadeError("too_many_requests", message, { param: "wait", retryAfterSeconds: 5 });
  }

  /** Resolves when there is room for so many bytes of a body. Throws `too_many_requests`, and the signal's reason. */
  async body(token: AccessToken, bytes: number, signal: AbortSignal): Promise<Leave> {
    const room = bytes > smallBody ? this.#large : this.#small;
    const now = room.takeNow(token, bytes);
    if (now !== null) return now;
    const late = AbortSignal.timeout(this.#patienceMs);
    try {
      return await room.take(token, bytes, AbortSignal.any([signal, late]));
    } catch (error) {
      if (signal.aborted || !late.aborted) throw error;
      const message = `a body of ${bytes} bytes found no room in ${this.#patienceMs / 1000} s beside others of this token: send fewer at once`;
      throw new AlidadeError("too_many_requests", message, { param: "body", retryAfterSeconds: 1 });
    }
  }
}

function evenShare(total: number, tokens: number): number {
  return Math.max(1, Math.floor(total / Math.max(1, tokens)));
}
