/**
 * Takes rollouts from their claim to their end, for a run and for a node. A run claims its plans, a node claims from a
 * ledger. Both share these rules: how many rollouts run at once, which are set aside, suspects run one at a time, the
 * pause before another attempt, drain and stop. A source says the rest: where claims come from, how one attempt is made,
 * and where its end is reported.
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
  /** How many attempts the infrastructure has broken so far. */
  failures: number;
};

/**
 * How an attempt ended. `record`: null if none was written. `broken`: the infrastructure failure that ended it; null: the
 * rollout is done.
 */
export type LineEnd = { record: RolloutRecord | null; broken: ErrorCode | null };

/** `of`: `rollout` if processes died at it, `task` if too many of its rewards are missing. `why`: a sentence. */
export type Aside = { of: "rollout" | "task"; why: string };

export interface RolloutSource<Claim extends ClaimedRollout, End extends LineEnd, Slot extends string> {
  /** Changes when there may be more to claim. */
  readonly claimable: Waitable;
  /**
   * Begins as many rollouts as there is room for (`line.begin`). `wait`: call it after the next change; `again`: call it
   * again at once; `end`: no more will come.
   */
  claim(line: RolloutLine<Claim, End, Slot>): Promise<"wait" | "again" | "end">;
  /**
   * Makes one attempt. Returns a failed attempt as an end too. Throws the reason of `drain` if it fired before the attempt
   * began. Throws any other error only if no further attempt is possible.
   */
  attempt(claim: Claim, signals: { signal: AbortSignal; drain: AbortSignal }, slot: Slot): Promise<End>;
  /** Tells whether a rollout gets another attempt after `broken`. */
  mayRepeat(claim: Claim, broken: ErrorCode): boolean;
  /**
   * Puts the rollout back for its next attempt. `broken`: null if this attempt does not count, because the line was stopped or drained.
   * `end`: null if it did not begin.
   */
  again(claim: Claim, broken: ErrorCode | null, end: End | null): Promise<void>;
  /** Ends the rollout with `end`. */
  over(claim: Claim, end: End): Promise<void>;
  /** Ends the rollout without an attempt. */
  aside(claim: Claim, aside: Aside): Promise<void>;
  /** Called if one of the methods above threw. */
  failed(claim: Claim, error: unknown): void;
  /** Called when an attempt has ended that this process had lost (`stop`). */
  stopped?(claim: Claim, end: End): Promise<void>;
  /** Called after each attempt, before the line decides whether another follows. */
  ended?(claim: Claim, end: End): void;
}

/** `rules`: when a task is set aside. */
export type LineSetup = AfterFailure & Pick<RunSetup, "max_null_share"> & { guard?: LineGuard | undefined; rules: WatchRules };
type LineGuard = Pick<NonNullable<RunSetup["guard"]>, "claim" | "aside" | "isSuspect" | "takeTurn">;

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
  /** Changes when there may be room for more rollouts. */
  readonly #room = new Changes();

  /** `signal` stops all running attempts. `drain` stops claims, and attempts that hold no sandbox yet. */
  constructor(source: RolloutSource<Claim, End, Slot>, setup: LineSetup, { signal, drain }: { signal: AbortSignal; drain: AbortSignal }) {
    this.#source = source;
    this.#setup = setup;
    this.#signal = signal;
    this.#drain = AbortSignal.any([signal, drain]);
    this.#watch = new NullWatch(setup.max_null_share, (text) => setup.onProgress({ type: "note", text }), setup.rules);
  }

  /** Resolves when no more rollouts will come, or a signal has fired, and all running attempts have ended. */
  async run(): Promise<void> {
    try {
      for (let isEnd = false; !isEnd && !this.#drain.aborted; ) isEnd = await this.#claimOnce();
    } finally {
      while (this.#running.size > 0) await this.#room.after(this.#room.version, never);
    }
  }

  /** Claims that are not over, including suspects that wait for their turn. */
  get claims(): Claim[] {
    return [...this.#running.values()].map(({ claim }) => claim);
  }

  /** Counts the rollouts that hold a slot of this name. */
  taken(slot: Slot): number {
    return [...this.#running.values()].filter((one) => one.slot === slot && !one.isWaiting).length;
  }

  /** Makes the line look for claims again. */
  wake(): void {
    this.#room.add();
  }

  /** Stops an attempt that this process has lost. Its end is not reported. */
  stop(name: Pick<ClaimedRollout, "rollout_id" | "attempt">, reason: unknown): void {
    this.#running.get(keyOf(name))?.stop.abort(reason);
  }

  /** Begins a rollout without waiting for its end. */
  begin(claim: Claim, slot: Slot): void {
    void this.#work({ claim, slot, isWaiting: false, stop: new AbortController() });
  }

  /** Claims as many as there is room for, then waits for more claims or more room. true: no more will come. */
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
    using _claimed = this.#setup.guard?.claim(key);
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
    if (end === null) return source.again(claim, null, null);
    if (stop.signal.aborted) return source.stopped?.(claim, end);
    source.ended?.(claim, end);
    const { broken } = end;
    if (this.#signal.aborted && broken === "cancelled") return source.again(claim, null, end);
    if (broken === null || !source.mayRepeat(claim, broken)) return this.#over(claim, end);
    const next = { rollout_id: claim.rollout_id, attempt: claim.attempt + 1 };
    await beforeNextAttempt(this.#setup, next, { code: broken, failures: claim.failures + 1 }, AbortSignal.any([signal, this.#drain]));
    if (stop.signal.aborted) return source.stopped?.(claim, end);
    await source.again(claim, this.#signal.aborted ? null : broken, end);
  }

  #asideOf({ rollout_id, task: { task_id }, task_hash }: Claim): Aside | null {
    const why = this.#setup.guard?.aside.get(rollout_id);
    if (why !== undefined) return { of: "rollout", why };
    if (!this.#watch.isSetAside({ task_id, task_hash })) return null;
    return { of: "task", why: `too many rollouts of the task ${task_id} could not be graded here` };
  }

  /** Runs suspects one at a time, in parallel with all others. null: the line drained before the attempt began. */
  async #inTurn(one: OnTheLine<Claim, Slot>, signal: AbortSignal): Promise<End | null> {
    const { guard } = this.#setup;
    if (!guard?.isSuspect(one.claim.rollout_id)) return this.#attempt(one, signal);
    one.isWaiting = true;
    this.#room.add(); // its slot is free for another claim
    const leave = await guard.takeTurn(keyOf(one.claim), AbortSignal.any([signal, this.#drain])).catch(() => null);
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

  /** Counts this end first, because it may set the task aside for its next rollouts. */
  #over(claim: Claim, end: End): Promise<void> {
    if (end.record !== null) this.#watch.look(end.record);
    return this.#source.over(claim, end);
  }
}

function keyOf({ rollout_id, attempt }: Pick<ClaimedRollout, "rollout_id" | "attempt">): string {
  return `${rollout_id}#${attempt}`;
}
