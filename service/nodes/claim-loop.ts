/**
 * The line of a node (rollouts/line/) over a ledger: claims attempts under a lease, and hands in what they came to. Nothing of a claim
 * is kept here that the ledger does not have, so a node may die at any moment: what it had is claimed again, by the next attempt.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, type ErrorCode, messageOf } from "../../base/errors.ts";
import type { Controlled } from "../../proxy/control/index.ts";
import { type Fault, timeText } from "../../proxy/control/index.ts";
import { type Aside, type LineEnd, type LineSetup, RolloutLine, type RolloutSource, watchOfService } from "../../rollouts/line/index.ts";
import {
  type AttemptName,
  type AttemptResult,
  beatSeconds,
  type Claim,
  type ClaimedSets,
  type Lease,
  type Ledger,
  nothingMeasured,
  type ParkedEnd,
  parks,
  setAside,
} from "../ledger/index.ts";
import { BrokenStreak } from "./broken-streak.ts";
import { ControlFollower } from "./control-follower.ts";
import { EngineGrants } from "./engine-grants.ts";
import { LeaseGuard } from "./lease-guard.ts";

/** `result`: null if the rollout is over already. `settled`: called when the ledger has the result. Must not throw. */
export type NodeEnd = LineEnd & {
  result: AttemptResult | null;
  settled?: () => Promise<void>;
  /** Whether a later rollout may go on from it, if it is parked: a call of it has finished. Left out: none may. */
  goesOn?: () => Promise<boolean>;
};

/** `drain`: an attempt that holds no sandbox yet does not begin, and throws the reason of `drain`. */
export type Stops = { signal: AbortSignal; drain: AbortSignal };

export type NodeWork = {
  /** Its name in the ledger. A node that joins under the name of a dead node takes its place. */
  name: string;
  ledger: Ledger;
  /** Attempts of a dead process with this name that are not blamed for its death. Left out: none. */
  blameless?: readonly AttemptName[];
  /** Its gates follow the ledger's fences. */
  setup: Omit<LineSetup, "rules" | "proxy"> & { proxy: Pick<Controlled, "pool" | "fences"> };
  /** Claims that it has at once, by what they may be from. */
  atOnce: Record<ClaimedSets, number>;
  /** Makes an attempt. Returns a failed attempt as an end too. */
  attempt: (claim: Claim, stops: Stops, slot: ClaimedSets) => Promise<NodeEnd>;
};

/** The pause before another try at a ledger that cannot be written, such as on a full disk. */
const againMs = 2_000;

export class ClaimLoop implements RolloutSource<Claim, NodeEnd, ClaimedSets> {
  readonly #node: NodeWork;
  readonly #signal: AbortSignal;
  /** Fires when the node must claim no more. */
  readonly #drained: AbortSignal;
  readonly #line: RolloutLine<Claim, NodeEnd, ClaimedSets>;
  readonly #streak = new BrokenStreak();
  /** After too many broken attempts the node makes one at a time: this one. */
  #probe: Claim | null = null;
  readonly #over = new AbortController();
  readonly #follower: ControlFollower;
  readonly #guard: LeaseGuard;
  readonly #grants: EngineGrants;
  #lease: Lease | null = null;
  /** The lease under which gates and policy names were last taken from the ledger. */
  #readyFor: Lease | null = null;
  /** When the ledger was asked for what renewed the lease. */
  #askedAt = 0;
  /** Since when the ledger does not answer, and what became of the last question; null while it does. */
  #away: { since: number; why: string } | null = null;
  /** Attempts that the ledger took away while this process lived. The next join names them, so they are not blamed for a death. */
  readonly #taken: AttemptName[] = [];
  /** The ledger lets it claim nothing more. */
  #isDraining = false;

  /** `signal` puts running attempts back into the ledger; they do not count as broken. `drained` lets nothing more begin. */
  constructor(node: NodeWork, signal: AbortSignal, drained: AbortSignal) {
    this.#node = node;
    this.#signal = signal;
    this.#drained = drained;
    const { proxy } = node.setup;
    this.#line = new RolloutLine(this, { ...node.setup, rules: watchOfService }, { signal, drain: drained });
    this.#follower = new ControlFollower(proxy, node.ledger, (text) => this.#note(text), this.#over.signal);
    this.#guard = new LeaseGuard(proxy.pool, (text) => this.#note(text));
    this.#grants = new EngineGrants(proxy.pool, node.ledger);
  }

  /** Until one of the signals fires, and what runs has ended. */
  async run(): Promise<void> {
    using _guard = this.#guard;
    const meanwhile = [this.#beatUntil(this.#over.signal), this.#follower.follow()];
    try {
      await this.#line.run();
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

  get claimable() {
    return this.#node.ledger.claimable;
  }

  async claim(): Promise<"wait" | "again"> {
    if (this.#streak.isOn && !this.#isProbing) await this.#streak.rest(this.#drained);
    if (this.#drained.aborted) return "again";
    try {
      const lease = await this.#joined();
      // Evaluations take their own slots first, and then their share of the others.
      await this.#claimFor("evaluations", lease);
      await this.#claimFor("any", lease);
      return "wait";
    } catch (error) {
      this.#isAway("nothing can be claimed", error);
      await sleep(againMs, undefined, { signal: this.#drained }).catch(() => undefined);
      return "again";
    }
  }

  async #claimFor(slot: ClaimedSets, lease: Lease): Promise<void> {
    const { ledger, atOnce } = this.#node;
    if (atOnce[slot] === 0) return;
    const { isOn } = this.#streak;
    const free = Math.min(atOnce[slot] - this.#line.taken(slot), isOn ? Number(!this.#isProbing) : Number.POSITIVE_INFINITY);
    const claims = await ledger.claim(lease, free, slot);
    // It may answer without a question to the ledger where there is nothing to claim.
    if (claims.length > 0) this.#away = null;
    for (const claim of claims) {
      if (isOn) this.#probe = claim;
      this.#line.begin(claim, slot);
    }
  }

  get #isProbing(): boolean {
    return this.#probe !== null && this.#line.claims.includes(this.#probe);
  }

  /** Nothing is sampled before gates and names are those of the ledger. */
  async #joined(): Promise<Lease> {
    const { ledger, name, atOnce, blameless = [] } = this.#node;
    if (this.#lease === null) {
      const askedAt = performance.now();
      const taken = [...this.#taken];
      this.#lease = await ledger.join({ name, slots: atOnce.any + atOnce.evaluations, blameless: [...blameless, ...taken] });
      this.#taken.splice(0, taken.length);
      this.#askedAt = askedAt;
    }
    const lease = this.#lease;
    if (this.#readyFor === lease) return lease;
    await this.#grants.renew(lease);
    await this.#follower.joined(lease);
    if (this.#lease !== lease) throw new AlidadeError("store_error", "the lease was lost before the node was ready");
    this.#readyFor = lease;
    this.#guardUntil(lease);
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
    this.#note(`${what}: ${messageOf(error)}`);
  }

  async #beat(): Promise<void> {
    const lease = this.#lease;
    if (lease === null) return;
    const askedAt = performance.now();
    const names = this.#line.claims.map(({ rollout_id, attempt }) => ({ rollout_id, attempt }));
    const taken = this.#taken.length;
    const orders = await this.#node.ledger.beat(lease, names);
    this.#away = null;
    // Attempts that were taken before this beat were lost for another reason than the lease, such as a cancel.
    if (orders.isLost) this.#taken.push(...names);
    else this.#taken.splice(0, taken);
    this.#isDraining = orders.isDraining;
    for (const one of orders.stop) this.#line.stop(one, new AlidadeError("cancelled", "the attempt is no longer this node's"));
    if (orders.isLost) this.#lost();
    else await this.#renewed(lease, askedAt);
  }

  #lost(): void {
    this.#guard.lost();
    this.#grants.lost();
    this.#lease = null;
    this.#line.wake();
  }

  async #renewed(lease: Lease, askedAt: number): Promise<void> {
    this.#askedAt = askedAt;
    if (this.#readyFor === lease) this.#guardUntil(lease);
    await this.#grants.renew(lease);
    await this.#follower.look();
  }

  /** Where no other process can take the lease, one that stood still goes on with what it had. */
  #guardUntil(lease: Lease): void {
    if (this.#node.ledger.isShared) this.#guard.renewed(lease, this.#askedAt);
    else this.#guard.opened();
  }

  /** A ledger that does not answer sees by the lease that the node has gone. */
  async #leave(): Promise<void> {
    if (this.#lease !== null) await this.#node.ledger.leave(this.#lease).catch((error: unknown) => this.#note(messageOf(error)));
  }

  attempt(claim: Claim, stops: Stops, slot: ClaimedSets): Promise<NodeEnd> {
    return this.#node.attempt(claim, stops, slot);
  }

  /** Repeats also after an image that this node cannot get: another node may get it. */
  mayRepeat({ failures, spec }: Claim): boolean {
    return failures < spec.retries;
  }

  async again(claim: Claim, broken: ErrorCode | null, end: NodeEnd | null): Promise<void> {
    if ((await this.#written(() => this.#node.ledger.release(claim, broken))) === "queued") return;
    this.#noteTaken(claim);
    await this.#letGo(claim, end);
  }

  async over(claim: Claim, end: NodeEnd): Promise<void> {
    const { result, settled } = end;
    if (result === null) return;
    if ((await this.#finish(claim, result)) === "accepted") await settled?.();
    else await this.#letGo(claim, end);
  }

  async aside(claim: Claim, { of, why }: Aside): Promise<void> {
    const result = of === "rollout" ? setAside(why) : nothingMeasured("task_set_aside", why);
    if ((await this.#finish(claim, result)) === "fenced") await this.#letGo(claim, { result, record: null, broken: null });
  }

  async stopped(claim: Claim, end: NodeEnd): Promise<void> {
    await this.#letGo(claim, end);
  }

  /**
   * One that was cut may be parked. Only now may another rollout go on with its session: also if it ended by itself before this node
   * heard of the cut. Then the other one is given all its answers, and is graded. `end`: null if the attempt did not begin.
   */
  async #letGo(claim: Claim, end: NodeEnd | null): Promise<void> {
    if (!parks(claim.spec)) return;
    const parkedEnd = await parkedEndOf(claim, end);
    await this.#written(() => this.#node.ledger.letGo(claim, parkedEnd));
  }

  failed({ rollout_id }: Claim, error: unknown): void {
    this.#note(`${rollout_id}: ${messageOf(error)}`);
  }

  ended({ task_hash }: Claim, { broken }: NodeEnd): void {
    const wasOn = this.#streak.isOn;
    this.#streak.ended(broken, task_hash);
    if (wasOn === this.#streak.isOn) return;
    const [fault] = this.#streak.faults();
    this.#note(fault === undefined ? "attempts are no longer broken here" : `ALARM: ${fault.reason}`);
  }

  async #finish(claim: Claim, result: AttemptResult): Promise<"accepted" | "fenced"> {
    const written = await this.#written(() => this.#node.ledger.finish(claim, result));
    if (written === "fenced") {
      this.#noteTaken(claim);
      this.#note(`${claim.rollout_id}: attempt ${claim.attempt} is over or was replaced meanwhile, its result is left out`);
    }
    return written;
  }

  #noteTaken({ rollout_id, attempt }: Claim): void {
    this.#taken.push({ rollout_id, attempt });
  }

  #note(text: string): void {
    this.#node.setup.onProgress({ type: "note", text });
  }

  /** Tries until the ledger takes it: a finished rollout has cost GPU time. If the node is stopped meanwhile, another attempt is made. */
  async #written<T>(write: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        if (this.#signal.aborted) throw error;
        this.#note(`${messageOf(error)}; trying again every ${againMs / 1000} s`);
        await sleep(againMs, undefined, { signal: this.#signal }).catch(() => undefined);
      }
    }
  }
}

async function parkedEndOf(claim: Claim, end: NodeEnd | null): Promise<ParkedEnd> {
  // An earlier attempt of it may have sampled. The node that takes it up finds out.
  if (end === null) return claim.attempt > 1 && claim.failures === 0 && claim.parked === null ? "goes_on" : "nothing_sampled";
  const { broken, result } = end;
  if (broken !== "cancelled" && (broken !== null || result?.state !== "completed")) return "broken";
  return (await end.goesOn?.()) ? "goes_on" : "nothing_sampled";
}
