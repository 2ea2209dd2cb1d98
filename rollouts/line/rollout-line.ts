/**
 * Takes rollouts from their claim to their end, for all that make rollouts. A run hands out plans, a node the claims of a ledger.
 * Both share what stands here: how many run at once, what is set aside, suspects one at a time, the pause before another attempt, the
 * drain and the stop. A source differs in three things: where claims come from, what one attempt is, and who is told of its end.
 */
import type { ErrorCode } from "../../base/errors.ts";
import { Changes, type Waitable } from "../../base/host/changes.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { RunSetup } from "../run-setup.ts";
import { type AfterFailure, beforeNextAttempt } from "./before-next-attempt.ts";
import { NullWatch, type WatchRules } from "./null-watch.ts";

/** The next attempt at one rollout. */
export type ClaimedRollout = {
  rollout_id: string;
  attempt: number;
  task: { task_id: string };
  task_hash: string;
  /** Attempts of it that the infrastructure broke so far. */
  failures: number;
};

/** How an attempt ended. `record`: null where none was written. `broken`: what of the infrastructure ended it; null where it is done. */
export type LineEnd = { record: RolloutRecord | null; broken: ErrorCode | null };

/** `of`: what is set aside, the rollout by deaths of the process or its task by rewards that are missing. `why`: in a sentence. */
export type Aside = { of: "rollout" | "task"; why: string };

export interface RolloutSource<Claim extends ClaimedRollout, End extends LineEnd, Slot extends string> {
  /** Grows when there may be more to claim. */
  readonly claimable: Waitable;
  /** Begins what there is room for (`line.begin`). again: it is to be asked at once; end: no more will come. */
  claim(line: RolloutLine<Claim, End, Slot>): Promise<"wait" | "again" | "end">;
  /**
   * Makes one attempt. What fails is an end too. Throws the reason of `drain` where that fired before the attempt had begun, and
   * what makes all further ones impossible.
   */
  attempt(claim: Claim, signals: { signal: AbortSignal; drain: AbortSignal }, slot: Slot): Promise<End>;
  /** Whether the rollout has another attempt after one that was broken. */
  mayRepeat(claim: Claim, broken: ErrorCode): boolean;
  /** It waits for its next attempt. `broken`: null where this one does not count, for the line was stopped or drained. */
  again(claim: Claim, broken: ErrorCode | null): Promise<void>;
  /** It is over, with this end. */
  over(claim: Claim, end: End): Promise<void>;
  /** It is over without an attempt. */
  aside(claim: Claim, aside: Aside): Promise<void>;
  /** One of the above threw. */
  failed(claim: Claim, error: unknown): void;
  /** Is told of each end before it is decided whether another attempt follows. */
  ended?(claim: Claim, end: End): void;
}

/** `rules`: when a task is set aside. */
export type LineSetup = AfterFailure & Pick<RunSetup, "max_null_share"> & { guard?: LineGuard | undefined; rules: WatchRules };
type LineGuard = Pick<NonNullable<RunSetup["guard"]>, "aside" | "isSuspect" | "alone">;

/** `isWaiting`: a suspect whose turn has not come holds no slot. */
type OnTheLine<Claim, Slot> = { claim: Claim; slot: Slot; isWaiting: boolean; stop: AbortController };

const never = new AbortController().signal;

export class RolloutLine<Claim extends ClaimedRollout, End extends LineEnd, Slot extends string> {
  readonly #source: RolloutSource<Claim, End, Slot>;
  readonly #setup: LineSetup;
  readonly #signal: AbortSignal;
  readonly #drain: AbortSignal;
  readonly #running = new Map<string, OnTheLine<Claim, Slot>>();
  readonly #watch: NullWatch;
  /** Grows when there may be room for more. */
  readonly #room = new Changes();

  /** `signal` stops what runs. `drain`: nothing more is claimed, and what holds no sandbox yet does not begin. */
  constructor(source: RolloutSource<Claim, End, Slot>, setup: LineSetup, { signal, drain }: { signal: AbortSignal; drain: AbortSignal }) {
    this.#source = source;
    this.#setup = setup;
    this.#signal = signal;
    this.#drain = AbortSignal.any([signal, drain]);
    this.#watch = new NullWatch(setup.max_null_share, (text) => setup.onProgress({ type: "note", text }), setup.rules);
  }

  /** Until no more will come or one of the signals fires, and what runs has ended. */
  async run(): Promise<void> {
    try {
      for (let isEnd = false; !isEnd && !this.#drain.aborted; ) isEnd = await this.#claimOnce();
    } finally {
      while (this.#running.size > 0) await this.#room.after(this.#room.version, never);
    }
  }

  /** Those that are not over, also those that wait for their turn. */
  get claims(): Claim[] {
    return [...this.#running.values()].map(({ claim }) => claim);
  }

  /** How many hold a slot of this name. */
  taken(slot: Slot): number {
    return [...this.#running.values()].filter((one) => one.slot === slot && !one.isWaiting).length;
  }

  /** Looks for claims again. */
  wake(): void {
    this.#room.add();
  }

  /** For an attempt that is no longer this process's: its end is told to no one. */
  stop(name: Pick<ClaimedRollout, "rollout_id" | "attempt">, reason: unknown): void {
    this.#running.get(keyOf(name))?.stop.abort(reason);
  }

  /** Does not wait for it. */
  begin(claim: Claim, slot: Slot): void {
    void this.#work({ claim, slot, isWaiting: false, stop: new AbortController() });
  }

  /** Claims what there is room for, then waits until there is more to claim or more room. true: no more will come. */
  async #claimOnce(): Promise<boolean> {
    const [seen, room] = [this.#source.claimable.version, this.#room.version];
    const then = await this.#source.claim(this);
    if (then !== "wait") return then === "end";
    const leave = new AbortController();
    const either = AbortSignal.any([leave.signal, this.#drain]);
    const waits = [this.#source.claimable.after(seen, either), this.#room.after(room, either)];
    await Promise.race(waits).catch(() => undefined);
    leave.abort();
    await Promise.allSettled(waits);
    return false;
  }

  async #work(one: OnTheLine<Claim, Slot>): Promise<void> {
    const key = keyOf(one.claim);
    this.#running.set(key, one);
    try {
      await this.#make(one, AbortSignal.any([one.stop.signal, this.#signal]));
    } catch (error) {
      this.#source.failed(one.claim, error);
    } finally {
      this.#running.delete(key);
      this.#room.add();
    }
  }

  async #make(one: OnTheLine<Claim, Slot>, signal: AbortSignal): Promise<void> {
    const source = this.#source;
    const { claim, stop } = one;
    const aside = this.#asideOf(claim);
    if (aside !== null) return source.aside(claim, aside);
    const end = await this.#inTurn(one, signal);
    if (end === null) return source.again(claim, null);
    if (stop.signal.aborted) return;
    source.ended?.(claim, end);
    const { broken } = end;
    if (this.#signal.aborted && broken === "cancelled") return source.again(claim, null);
    if (broken === null || !source.mayRepeat(claim, broken)) return this.#over(claim, end);
    const next = { rollout_id: claim.rollout_id, attempt: claim.attempt + 1 };
    await beforeNextAttempt(this.#setup, next, { code: broken, failures: claim.failures + 1 }, AbortSignal.any([signal, this.#drain]));
    if (!stop.signal.aborted) await source.again(claim, this.#signal.aborted ? null : broken);
  }

  #asideOf({ rollout_id, task: { task_id }, task_hash }: Claim): Aside | null {
    const why = this.#setup.guard?.aside.get(rollout_id);
    if (why !== undefined) return { of: "rollout", why };
    if (!this.#watch.isSetAside({ task_id, task_hash })) return null;
    return { of: "task", why: `too many rollouts of the task ${task_id} could not be graded here` };
  }

  /** Suspects run one at a time, beside all others. null: the line drains before it has begun. */
  async #inTurn(one: OnTheLine<Claim, Slot>, signal: AbortSignal): Promise<End | null> {
    const { guard } = this.#setup;
    if (!guard?.isSuspect(one.claim.rollout_id)) return this.#attempt(one, signal);
    one.isWaiting = true;
    this.#room.add(); // others may be claimed for its slot
    const leave = await guard.alone.enter(AbortSignal.any([signal, this.#drain])).catch(() => null);
    one.isWaiting = false;
    // An attempt whose own signal has fired ends at once.
    if (leave === null) return signal.aborted ? this.#attempt(one, signal) : null;
    try {
      return await this.#attempt(one, signal);
    } finally {
      leave();
    }
  }

  async #attempt({ claim, slot }: OnTheLine<Claim, Slot>, signal: AbortSignal): Promise<End | null> {
    try {
      return await this.#source.attempt(claim, { signal, drain: this.#drain }, slot);
    } catch (error) {
      if (this.#drain.aborted && error === this.#drain.reason) return null;
      throw error;
    }
  }

  /** The task's next rollouts are looked at with this one counted. */
  #over(claim: Claim, end: End): Promise<void> {
    if (end.record !== null) this.#watch.look(end.record);
    return this.#source.over(claim, end);
  }
}

function keyOf({ rollout_id, attempt }: Pick<ClaimedRollout, "rollout_id" | "attempt">): string {
  return `${rollout_id}#${attempt}`;
}
