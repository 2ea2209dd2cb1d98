/**
 * Claims attempts of a ledger, has them made, and hands in what they came to, under a lease. Nothing of a claim is kept here
 * that the ledger does not have, so a node may die at any moment: what it had is claimed again, by the next attempt.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, type ErrorCode, messageOf } from "../../base/errors.ts";
import type { LastGuard } from "../../base/host/deaths/last-guard.ts";
import type { Controlled } from "../../proxy/control/index.ts";
import { type Fault, timeText } from "../../proxy/control/index.ts";
import { type AttemptResult, beatSeconds, Changes, type Claim, type ClaimedSets, type Lease, type Ledger } from "../ledger/index.ts";
import { BrokenStreak } from "./broken-streak.ts";
import { ControlFollower } from "./control-follower.ts";
import { EngineGrants } from "./engine-grants.ts";
import { LeaseGuard } from "./lease-guard.ts";

/** `broken`: what of the infrastructure ended it; null where it is done. */
export type MadeAttempt = { result: AttemptResult; broken: ErrorCode | null };

export type NodeWork = {
  /** Its name in the ledger; one that joins again under it takes the place of the one that died. */
  name: string;
  ledger: Ledger;
  /** Its gates follow the ledger's fences. */
  proxy: Pick<Controlled, "pool" | "fences">;
  /** Claims that it has at once, by what they may be from. */
  atOnce: Record<ClaimedSets, number>;
  note: (text: string) => void;
  /** Rollouts that ran when an earlier process died, and that may be why. */
  suspects?: Pick<LastGuard, "isSuspect" | "alone"> | undefined;
  /** Makes an attempt. What fails is an end too: it never throws. */
  attempt: (claim: Claim, signal: AbortSignal, slot: ClaimedSets) => Promise<MadeAttempt>;
  /** The time before a broken attempt goes back into the line. */
  rest: (claim: Claim, broken: ErrorCode, signal: AbortSignal) => Promise<void>;
};

/** `isWaiting`: a suspect whose turn has not come holds no slot. */
type ClaimedAttempt = { claim: Claim; slot: ClaimedSets; isProbe: boolean; isWaiting: boolean; stop: AbortController };

/** A ledger that cannot be written (a full disk) is asked again so often. */
const againMs = 2_000;

export class ClaimLoop {
  readonly #node: NodeWork;
  readonly #signal: AbortSignal;
  /** Fires when nothing more is claimed. */
  readonly #drained: AbortSignal;
  readonly #running = new Map<string, ClaimedAttempt>();
  readonly #ended = new Changes();
  readonly #streak = new BrokenStreak();
  readonly #over = new AbortController();
  readonly #follower: ControlFollower;
  readonly #guard: LeaseGuard;
  readonly #grants: EngineGrants;
  #lease: Lease | null = null;
  /** Under this lease gates and names are those of the ledger. */
  #readyFor: Lease | null = null;
  /** When the ledger was asked for what renewed the lease. */
  #askedAt = 0;
  /** Since when the ledger does not answer, and what became of the last question; null while it does. */
  #away: { since: number; why: string } | null = null;
  /** The ledger lets it claim nothing more. */
  #isDraining = false;

  /** `signal`: what runs then goes back into the line, and does not count as broken. `drained`: nothing more is claimed. */
  constructor(node: NodeWork, signal: AbortSignal, drained: AbortSignal) {
    this.#node = node;
    this.#signal = signal;
    this.#drained = drained;
    this.#follower = new ControlFollower(node.proxy, node.ledger, node.note, this.#over.signal);
    this.#guard = new LeaseGuard(node.proxy.pool, node.note);
    this.#grants = new EngineGrants(node.proxy.pool, node.ledger);
  }

  /** Until one of the signals fires, and what runs has ended. */
  async run(): Promise<void> {
    using _guard = this.#guard;
    const meanwhile = [this.#beatUntil(this.#over.signal), this.#follower.follow()];
    try {
      while (!this.#drained.aborted) await this.#claimOnce();
      while (this.#running.size > 0) await this.#ended.after(this.#ended.version, new AbortController().signal);
    } finally {
      this.#over.abort();
      await Promise.all(meanwhile);
      await this.#leave();
    }
  }

  /** Why nothing is claimed. Faults of the machine are not included. */
  faults(): Fault[] {
    const away = this.#away && `the ledger does not answer since ${timeText(this.#away.since)}: ${this.#away.why}`;
    const draining = "the node is draining: it ends what it has begun and claims nothing more";
    return [
      ...(away === null ? [] : [{ status: "down" as const, reason: away }]),
      ...this.#streak.faults(),
      ...(this.#drained.aborted || this.#isDraining ? [{ status: "draining" as const, reason: draining }] : []),
    ];
  }

  /** Takes what there is room for, then waits until there is more to do or more room. */
  async #claimOnce(): Promise<void> {
    const { ledger } = this.#node;
    const [seen, ended] = [ledger.claimable.version, this.#ended.version];
    if (this.#streak.isOn && !this.#isProbing) await this.#streak.rest(this.#drained);
    if (this.#drained.aborted) return;
    try {
      const lease = await this.#joined();
      // Evaluations take their own slots first, and then their share of the others.
      await this.#claimFor("evaluations", lease);
      await this.#claimFor("any", lease);
    } catch (error) {
      this.#isAway("nothing can be claimed", error);
      await sleep(againMs, undefined, { signal: this.#drained }).catch(() => undefined);
      return;
    }
    const leave = new AbortController();
    const either = AbortSignal.any([leave.signal, this.#drained]);
    const waits = [ledger.claimable.after(seen, either), this.#ended.after(ended, either)];
    await Promise.race(waits).catch(() => undefined);
    leave.abort();
    await Promise.allSettled(waits);
  }

  async #claimFor(slot: ClaimedSets, lease: Lease): Promise<void> {
    const { ledger, atOnce } = this.#node;
    if (atOnce[slot] === 0) return;
    const taken = [...this.#running.values()].filter((one) => one.slot === slot && !one.isWaiting).length;
    const { isOn } = this.#streak;
    const free = Math.min(atOnce[slot] - taken, isOn ? Number(!this.#isProbing) : Number.POSITIVE_INFINITY);
    const claims = await ledger.claim(lease, free, slot);
    // It may answer without a question to the ledger where there is nothing to claim.
    if (claims.length > 0) this.#away = null;
    for (const claim of claims) void this.#work(claim, slot, isOn);
  }

  /** The one attempt that a machine which breaks its attempts tries. */
  get #isProbing(): boolean {
    return [...this.#running.values()].some(({ isProbe }) => isProbe);
  }

  /** Nothing is sampled before gates and names are those of the ledger. */
  async #joined(): Promise<Lease> {
    const { ledger, name, atOnce } = this.#node;
    if (this.#lease === null) {
      const askedAt = performance.now();
      this.#lease = await ledger.join({ name, slots: atOnce.any + atOnce.evaluations });
      this.#askedAt = askedAt;
    }
    const lease = this.#lease;
    if (this.#readyFor === lease) return lease;
    await this.#grants.renew(lease);
    await this.#follower.joined(lease);
    if (this.#lease !== lease) throw new AlidadeError("store_error", "the lease was lost before the node was ready");
    this.#readyFor = lease;
    this.#guard.renewed(lease, this.#askedAt);
    return lease;
  }

  async #beatUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(beatSeconds * 1000, undefined, { signal, ref: false }).catch(() => undefined);
      await this.#beat().catch((error: unknown) => this.#isAway("no sign of life was given", error));
    }
  }

  #isAway(what: string, error: unknown): void {
    this.#away = { since: this.#away?.since ?? Date.now(), why: messageOf(error) };
    this.#node.note(`${what}: ${messageOf(error)}`);
  }

  async #beat(): Promise<void> {
    const lease = this.#lease;
    if (lease === null) return;
    const askedAt = performance.now();
    const names = [...this.#running.values()].map(({ claim }) => ({ rollout_id: claim.rollout_id, attempt: claim.attempt }));
    const orders = await this.#node.ledger.beat(lease, names);
    this.#away = null;
    this.#isDraining = orders.isDraining;
    for (const one of orders.stop)
      this.#running.get(keyOf(one))?.stop.abort(new AlidadeError("cancelled", "the attempt is no longer this node's"));
    if (orders.isLost) this.#lost();
    else await this.#renewed(lease, askedAt);
  }

  #lost(): void {
    this.#guard.lost();
    this.#grants.lost();
    this.#lease = null;
    this.#ended.add();
  }

  async #renewed(lease: Lease, askedAt: number): Promise<void> {
    this.#askedAt = askedAt;
    if (this.#readyFor === lease) this.#guard.renewed(lease, askedAt);
    await this.#grants.renew(lease);
    await this.#follower.look();
  }

  /** A ledger that does not answer sees by the lease that the node has gone. */
  async #leave(): Promise<void> {
    if (this.#lease !== null) await this.#node.ledger.leave(this.#lease).catch((error: unknown) => this.#node.note(messageOf(error)));
  }

  async #work(claim: Claim, slot: ClaimedSets, isProbe: boolean): Promise<void> {
    const one: ClaimedAttempt = { claim, slot, isProbe, isWaiting: false, stop: new AbortController() };
    this.#running.set(keyOf(claim), one);
    try {
      await this.#make(one, AbortSignal.any([one.stop.signal, this.#signal]));
    } catch (error) {
      this.#node.note(`${claim.rollout_id}: ${messageOf(error)}`);
    } finally {
      this.#running.delete(keyOf(claim));
      this.#ended.add();
    }
  }

  async #make(one: ClaimedAttempt, signal: AbortSignal): Promise<void> {
    const { ledger, rest } = this.#node;
    const { claim } = one;
    const stopped = one.stop.signal;
    const end = await this.#inTurn(one, signal);
    if (end === null) {
      await this.#written(() => ledger.release(claim, null));
      return;
    }
    if (stopped.aborted) return;
    this.#noteEnd(end.broken, claim);
    if (this.#signal.aborted && end.broken === "cancelled") {
      await this.#written(() => ledger.release(claim, null));
      return;
    }
    if (end.broken !== null && claim.failures < claim.spec.retries) {
      await rest(claim, end.broken, AbortSignal.any([signal, this.#drained]));
      if (!stopped.aborted) await this.#written(() => ledger.release(claim, this.#signal.aborted ? null : end.broken));
      return;
    }
    if ((await this.#written(() => ledger.finish(claim, end.result))) === "fenced")
      this.#node.note(`${claim.rollout_id}: attempt ${claim.attempt} is over or was replaced meanwhile, its result is left out`);
  }

  /** Suspects run one at a time, beside all others. null: the node drains before its turn has come. */
  async #inTurn(one: ClaimedAttempt, signal: AbortSignal): Promise<MadeAttempt | null> {
    const { suspects, attempt } = this.#node;
    const { claim, slot } = one;
    if (!suspects?.isSuspect(claim.rollout_id)) return attempt(claim, signal, slot);
    one.isWaiting = true;
    this.#ended.add(); // others may be claimed for its slot
    const leave = await suspects.alone.enter(AbortSignal.any([signal, this.#drained])).catch(() => null);
    one.isWaiting = false;
    // An attempt whose own signal has fired ends at once.
    if (leave === null) return signal.aborted ? attempt(claim, signal, slot) : null;
    try {
      return await attempt(claim, signal, slot);
    } finally {
      leave();
    }
  }

  #noteEnd(broken: ErrorCode | null, { task_hash }: Claim): void {
    const wasOn = this.#streak.isOn;
    this.#streak.ended(broken, task_hash);
    if (wasOn === this.#streak.isOn) return;
    const [fault] = this.#streak.faults();
    this.#node.note(fault === undefined ? "attempts are no longer broken here" : `ALARM: ${fault.reason}`);
  }

  /** A finished rollout's GPU time is worth the wait for a disk; a node that is stopped meanwhile leaves it to the next attempt. */
  async #written<T>(write: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (this.#signal.aborted) throw error;
        this.#node.note(`${messageOf(error)}; trying again every ${againMs / 1000} s`);
        await sleep(againMs, undefined, { signal: this.#signal }).catch(() => undefined);
      }
    }
  }
}

function keyOf({ rollout_id, attempt }: { rollout_id: string; attempt: number }): string {
  return `${rollout_id}#${attempt}`;
}
