/**
 * What stands between a harness's request and the work that it makes: places, a pace and room, for each session its own
 * and shared in turn (bounds.ts). What waits holds nothing that others need; what waits too long gets a 429.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../errors.ts";
import type { Session } from "../session/session.ts";
import { type Bounds, boundsOf } from "./bounds.ts";
import type { Exchange } from "./exchange.ts";
import { FairShare } from "./fair-share.ts";
import { Pace } from "./pace.ts";

/** As long as a harness waits for the first byte of an answer without a doubt. */
const patienceMs = 30_000;
/** A body of more waits for room that all sessions share. What a session has of smaller ones its own bounds say. */
const smallBytes = 1024 * 1024;
/** Large bodies that are on their way in, of all sessions. */
const roomBytes = 256 * 1024 * 1024;
/** A door carries a hundred times as much. A slower sender of a large body keeps memory that other requests wait for. */
const slowestBytesPerMs = 1024;
/** So much new may come at any time: it is read, recorded and sent in a few milliseconds. */
const fewBytes = 64 * 1024;
/** To read and check one value of JSON takes as long as so many bytes of text. */
const bytesPerValue = 256;

/** What is brought is in memory already. */
const freshPatienceMs = 2_000;

/** What of a request was in none before it. */
export type Brought = { bytes: number; values: number };

/** What one session has used. */
type Load = { bounds: Bounds; requests: Pace; read: Pace; fresh: Pace };

export class Gate {
  readonly #ofSandboxes: Bounds;
  readonly #loads = new WeakMap<Session, Load>();
  readonly #places = new FairShare<Session>(Number.POSITIVE_INFINITY, (session) => this.boundsOf(session).calls_at_once);
  readonly #turns = new FairShare<Session>(1, () => 1);
  readonly #ownRoom = new FairShare<Session>(Number.POSITIVE_INFINITY, (session) => this.boundsOf(session).bytes_in_flight);
  readonly #room = new FairShare<Session>(roomBytes, () => roomBytes / 4);

  constructor(ofSandboxes: Bounds) {
    this.#ofSandboxes = ofSandboxes;
  }

  boundsOf(session: Session): Bounds {
    return this.#load(session).bounds;
  }

  /** Resolves when this request may be answered, with its place. Throws `too_many_requests`. */
  async enter(session: Session, signal: AbortSignal): Promise<Disposable> {
    const { requests } = this.#load(session);
    const owed = requests.take(1);
    if (owed > patienceMs) {
      requests.giveBack(1);
      throw tooMany("requests_per_second", this.boundsOf(session), owed);
    }
    if (owed > 0) await sleep(owed, undefined, { signal });
    const leave = await this.#patiently(this.#places, session, 1, "calls_at_once", signal);
    return { [Symbol.dispose]: leave };
  }

  /** Resolves when it is this session's turn to work: one request of each that waits, and the connections between two. */
  async turn(session: Session, signal: AbortSignal): Promise<void> {
    const end = this.#turns.takeNow(session, 1) ?? (await this.#turns.take(session, 1, signal));
    setImmediate(end);
  }

  /** A request's body, read when there is room for it. Throws `too_many_requests`, and `request_invalid` for one that is too large or too slow. */
  async read(session: Session, { bytes, signal, closed }: Exchange): Promise<readonly Buffer[]> {
    const { bounds, read } = this.#load(session);
    bytes.assertAtMost(bounds.body_bytes);
    const size = bytes.declared ?? bounds.body_bytes;
    const leave = await this.#patiently(this.#ownRoom, session, size, "bytes_in_flight", signal);
    // Until it is answered, for as long it is in memory in some form or other.
    void closed.then(leave);
    const leaveRoom = size > smallBytes ? await this.#patiently(this.#room, session, size, "bytes_in_flight", signal) : null;
    try {
      const withinMs = leaveRoom ? patienceMs / 3 + size / slowestBytesPerMs : null;
      return await bytes.read({ limit: bounds.body_bytes, pace: read, withinMs });
    } finally {
      leaveRoom?.();
    }
  }

  /** How many bytes that were in no earlier request a session may bring at once: few, where it has brought too much. */
  mayBringAtOnce(session: Session): number {
    return this.#load(session).fresh.owedMs > 0 ? fewBytes : Number.POSITIVE_INFINITY;
  }

  /** Waits, but not for long, until it may bring more. Throws `too_many_requests`. */
  async mayBring(session: Session, signal: AbortSignal): Promise<void> {
    const { fresh, bounds } = this.#load(session);
    const owed = fresh.owedMs;
    if (owed > freshPatienceMs) throw tooMany("new_bytes_per_second", bounds, owed);
    if (owed > 0) await sleep(owed, undefined, { signal });
  }

  /** What it brought, once it was read. */
  brought(session: Session, { bytes, values }: Brought): void {
    this.#load(session).fresh.take(bytes + values * bytesPerValue);
  }

  /** Its pace for bytes that are read. */
  reading(session: Session): Pace {
    return this.#load(session).read;
  }

  #load(session: Session): Load {
    const known = this.#loads.get(session);
    if (known) return known;
    const bounds = boundsOf(session.spec, this.#ofSandboxes);
    const load: Load = {
      bounds,
      // As many at once as arrive in four seconds: a starting harness requests models, counts and titles beside its work.
      requests: new Pace(bounds.requests_per_second, bounds.requests_per_second * 4),
      // The whole room once a second: more than any harness sends, and a few hundredths of the thread that reads.
      read: new Pace(bounds.bytes_in_flight, bounds.bytes_in_flight),
      // A first prompt with its tools and pictures comes at once.
      fresh: new Pace(bounds.new_bytes_per_second, bounds.new_bytes_per_second * 8),
    };
    this.#loads.set(session, load);
    return load;
  }

  async #patiently(
    share: FairShare<Session>,
    session: Session,
    amount: number,
    name: keyof Bounds,
    signal: AbortSignal,
  ): Promise<() => void> {
    const now = share.takeNow(session, amount);
    if (now) return now;
    const limit = AbortSignal.timeout(patienceMs);
    try {
      return await share.take(session, amount, AbortSignal.any([signal, limit]));
    } catch (error) {
      if (signal.aborted || !limit.aborted) throw error;
      throw tooMany(name, this.boundsOf(session), 1_000);
    }
  }
}

function tooMany(name: keyof Bounds, bounds: Bounds, owedMs: number): AlidadeError {
  const message = `this session asks for more than its bound ${name} of ${bounds[name]}: come back later`;
  return new AlidadeError("too_many_requests", message, { param: name, retryAfterSeconds: owedMs / 1000 });
}
