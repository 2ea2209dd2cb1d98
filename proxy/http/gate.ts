/**
 * What stands between a harness's request and the work that it makes: places, a pace and room, for each session its own
 * and shared in turn (bounds.ts). What waits holds nothing that others need; what waits too long gets a 429.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import { Pace } from "../../base/host/pace.ts";
import type { Brought } from "../../base/wire/growing-json.ts";
import type { Session } from "../session/session.ts";
import { type Bounds, boundsOf } from "./bounds.ts";
import type { Exchange } from "./exchange.ts";
import { FairShare } from "./fair-share.ts";

/** As long as a harness waits for the first byte of an answer without a doubt. */
const patienceMs = 30_000;
/** A body of more waits for room that all sessions share. What a session has of smaller ones its own bounds say. */
const smallBytes = 1024 * 1024;
/** Large bodies that are on their way in, of all sessions. */
const roomBytes = 256 * 1024 * 1024;
/** A door carries a hundred times as much. A slower sender of a large body keeps memory that other requests wait for. */
const slowestBytesPerMs = 1024;
/** So much new may come at any time, a turn's words and results: a millisecond of the thread that serves all. */
const fewBytes = 64 * 1024;
/** To read, record and send one value of JSON takes as long as so many bytes of text: a message of a word has five. */
const bytesPerValue = 256;

/** What is brought is in memory already. A screenshot of a megabyte is owed no longer than this. */
const newPatienceMs = 10_000;

/** What one session has used. */
type Load = { bounds: Bounds; requests: Pace; read: Pace; brought: Pace };

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

  /**
   * A request's body, read when there is room for it. `known`: bytes of the longest that went before; what is longer brings
   * the rest anew, and is not read where it may not. Throws `too_many_requests`, and `request_invalid` for one that is too
   * large or too slow.
   */
  async read(
    session: Session,
    { bytes, signal, closed }: Pick<Exchange, "bytes" | "signal" | "closed">,
    known: number,
  ): Promise<readonly Buffer[]> {
    const { bounds, read } = this.#load(session);
    bytes.assertAtMost(bounds.body_bytes);
    this.mostNewValues(session, (bytes.declared ?? 0) - known);
    const limit = Math.min(bounds.body_bytes, known + bounds.new_bytes);
    const size = bytes.declared ?? limit;
    const leave = await this.#patiently(this.#ownRoom, session, size, "bytes_in_flight", signal);
    // Until it is answered, for as long it is in memory in some form or other.
    void closed.then(leave);
    const leaveRoom = size > smallBytes ? await this.#patiently(this.#room, session, size, "bytes_in_flight", signal) : null;
    try {
      const withinMs = leaveRoom ? patienceMs / 3 + size / slowestBytesPerMs : null;
      return await bytes.read({ limit, pace: read, withinMs });
    } finally {
      leaveRoom?.();
    }
  }

  /** How many values may be new among so many new bytes. Throws what `bring` throws where the bytes alone are too many. */
  mostNewValues(session: Session, bytes: number): number {
    const { bounds, brought } = this.#load(session);
    if (bytes > bounds.new_bytes) throw tooMuchNew(bytes, bounds);
    if (bytes > fewBytes && brought.owedMs > newPatienceMs) throw tooMany("new_bytes_per_second", bounds, brought.owedMs);
    return Math.floor((bounds.new_bytes - bytes) / bytesPerValue);
  }

  /**
   * Resolves when it may bring this, and charges it, and what of the whole is handed on again. Little may always come.
   * Throws `request_invalid` (413) for more than `new_bytes` or `body_values`, and `too_many_requests` for what would have
   * to wait for long.
   */
  async bring(
    session: Session,
    { bytes, values, allValues }: Pick<Brought, "bytes" | "values" | "allValues">,
    signal: AbortSignal,
  ): Promise<void> {
    const { bounds, brought, read } = this.#load(session);
    const cost = bytes + values * bytesPerValue;
    this.mostNewValues(session, cost);
    if (allValues > bounds.body_values) throw tooManyValues(allValues, bounds);
    read.take(allValues * bytesPerValue);
    const owed = brought.owedMs;
    if (owed > 0 && cost <= fewBytes) return;
    // Charged before it waits, so that the next one sees it.
    brought.take(cost);
    if (owed > 0) await sleep(owed, undefined, { signal });
  }

  /** Waits, but not for long, until nothing is owed of what it brought or read from the record. Throws `too_many_requests`. */
  async owesNothing(session: Session, signal: AbortSignal): Promise<void> {
    const { brought, bounds } = this.#load(session);
    do {
      const owed = brought.owedMs;
      if (owed > newPatienceMs) throw tooMany("new_bytes_per_second", bounds, owed);
      if (owed > 0) await sleep(owed, undefined, { signal });
      // One after the other, so that many at once see what each of them was charged.
      await this.turn(session, signal);
    } while (brought.owedMs > 0);
  }

  /** Charges what it was given to read from the record. */
  given(session: Session, bytes: number): void {
    this.#load(session).brought.take(bytes);
  }

  #load(session: Session): Load {
    const known = this.#loads.get(session);
    if (known) return known;
    const bounds = boundsOf(session.spec, this.#ofSandboxes);
    const load: Load = {
      bounds,
      // As many at once as arrive in four seconds: a starting harness requests models, counts and titles beside its work.
      requests: new Pace(bounds.requests_per_second, bounds.requests_per_second * 4),
      // The whole room in four seconds: more than any harness sends, and a few hundredths of the thread that reads.
      read: new Pace(bounds.bytes_in_flight / 4, bounds.bytes_in_flight / 4),
      // A first prompt with its tools and pictures comes at once.
      brought: new Pace(bounds.new_bytes_per_second, bounds.new_bytes),
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

function tooMuchNew(bytes: number, { new_bytes }: Bounds): AlidadeError {
  const message = `the request brings ${bytes} bytes or more that stood in none before it (a value of JSON counts as ${bytesPerValue}); its bound new_bytes is ${new_bytes}: send less that is new at once`;
  return new AlidadeError("request_invalid", message, { status: 413, param: "new_bytes" });
}

function tooManyValues(values: number, { body_values }: Bounds): AlidadeError {
  const message = `the request has ${values} values of JSON; its bound body_values is ${body_values}: send fewer`;
  return new AlidadeError("request_invalid", message, { status: 413, param: "body_values" });
}
