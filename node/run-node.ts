/**
 * One machine at work for a ledger: claims attempts, makes them with `rollouts/` as it is, and hands in what they came to.
 * Nothing of a claim is kept here that the ledger does not have, so a node may die at any moment: what it had is claimed
 * again, by the next attempt.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Blobs, putPacked } from "../blobs/index.ts";
import { AlidadeError, asAlidadeError, errorCodes, messageOf } from "../errors.ts";
import type { Harness } from "../harnesses/harness.ts";
import { type AttemptResult, beatSeconds, Changes, type Claim, type Lease, type Ledger, nothingMeasured } from "../ledger/index.ts";
import { beforeNextAttempt } from "../rollouts/before-next-attempt.ts";
import { type RolloutOutcome, type RunSetup, rolloutsOn } from "../rollouts/index.ts";
import { NullWatch, watchOfService } from "../rollouts/null-watch.ts";
import { brokenBy } from "../rollouts/rollouts.ts";
import { checkPublicNetwork } from "../sandboxes/check-spec.ts";
import { hashOf } from "../schema/ids.ts";
import type { SessionOptions } from "../schema/session-spec.ts";
import type { Task } from "../schema/task.ts";
import { attemptPlan } from "./attempt-plan.ts";
import { attemptResult } from "./attempt-result.ts";
import { ControlFollower } from "./control-follower.ts";
import { LeaseGuard } from "./lease-guard.ts";

export type NodeSetup = {
  /** Its name in the ledger; one that joins again under it takes the place of the one that died. */
  name: string;
  ledger: Ledger;
  blobs: Blobs;
  /** What its rollouts share. Their trajectories go to the blobs. */
  setup: Omit<RunSetup, "folder"> & { folder: Pick<RunSetup["folder"], "blobs" | "record"> };
  /** null: the operator's own. Throws `harness_unknown`. */
  harnessNamed(name: string | null): Promise<Harness>;
  /** Throws what this machine has no room for, or does not take; all tasks are taken where left out. */
  admit?: (task: Task) => void;
  /** Options of sessions that a set leaves out. */
  session: Partial<SessionOptions>;
};

/**
 * Until one of the signals fires. `signal`: what runs then goes back into the line, and does not count as broken. `drain`:
 * nothing more is claimed, and what runs is ended.
 */
export async function runNode(node: NodeSetup, signal: AbortSignal, drain: AbortSignal = signal): Promise<void> {
  await new Work(node, signal, AbortSignal.any([signal, drain])).run();
}

/** A ledger that cannot be written (a full disk) is asked again so often. */
const againMs = 2_000;

type MadeAttempt = { result: AttemptResult; broken: ReturnType<typeof brokenBy> };

class Work {
  readonly #node: NodeSetup;
  readonly #signal: AbortSignal;
  /** Fires when nothing more is claimed. */
  readonly #drained: AbortSignal;
  readonly #running = new Map<string, { claim: Claim; stop: AbortController }>();
  readonly #ended = new Changes();
  readonly #prepared = new Map<string, Promise<void>>();
  readonly #atOnce: number;
  readonly #over = new AbortController();
  readonly #follower: ControlFollower;
  readonly #guard: LeaseGuard;
  readonly #watch: NullWatch;
  #lease: Lease | null = null;
  /** Under this lease gates and names are those of the ledger. */
  #readyFor: Lease | null = null;
  /** When the ledger was asked for what renewed the lease. */
  #askedAt = 0;

  constructor(node: NodeSetup, signal: AbortSignal, drained: AbortSignal) {
    this.#node = node;
    this.#signal = signal;
    this.#drained = drained;
    this.#atOnce = node.setup.slots.atOnce;
    const note = (text: string): void => this.#note(text);
    this.#follower = new ControlFollower(node.setup.proxy, node.ledger, note, this.#over.signal);
    this.#guard = new LeaseGuard(node.setup.proxy.pool, note);
    this.#watch = new NullWatch(node.setup.max_null_share, note, watchOfService);
  }

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

  /** Takes what there is room for, then waits until there is more to do or more room. */
  async #claimOnce(): Promise<void> {
    const { ledger } = this.#node;
    const [seen, ended] = [ledger.version, this.#ended.version];
    try {
      const lease = await this.#joined();
      const claims = await ledger.claim(lease, this.#atOnce - this.#running.size);
      for (const claim of claims) void this.#work(claim);
    } catch (error) {
      this.#note(`nothing can be claimed: ${messageOf(error)}`);
      await sleep(againMs, undefined, { signal: this.#drained }).catch(() => undefined);
      return;
    }
    const leave = new AbortController();
    const either = AbortSignal.any([leave.signal, this.#drained]);
    const waits = [ledger.changed(seen, either), this.#ended.after(ended, either)];
    await Promise.race(waits).catch(() => undefined);
    leave.abort();
    await Promise.allSettled(waits);
  }

  /** Nothing is sampled before gates and names are those of the ledger. */
  async #joined(): Promise<Lease> {
    const { ledger, name } = this.#node;
    if (this.#lease === null) {
      const askedAt = performance.now();
      this.#lease = await ledger.join({ name, slots: this.#atOnce });
      this.#askedAt = askedAt;
    }
    const lease = this.#lease;
    if (this.#readyFor === lease) return lease;
    await this.#follower.joined(lease);
    if (this.#lease !== lease) throw new AlidadeError("store_error", "the lease was lost before the node was ready");
    this.#readyFor = lease;
    this.#guard.renewed(lease, this.#askedAt);
    return lease;
  }

  async #beatUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(beatSeconds * 1000, undefined, { signal, ref: false }).catch(() => undefined);
      await this.#beat().catch((error: unknown) => this.#note(`no sign of life was given: ${messageOf(error)}`));
    }
  }

  async #beat(): Promise<void> {
    const lease = this.#lease;
    if (lease === null) return;
    const askedAt = performance.now();
    const names = [...this.#running.values()].map(({ claim }) => ({ rollout_id: claim.rollout_id, attempt: claim.attempt }));
    const orders = await this.#node.ledger.beat(lease, names);
    for (const one of orders.stop)
      this.#running.get(keyOf(one))?.stop.abort(new AlidadeError("cancelled", "the attempt is no longer this node's"));
    if (orders.isLost) this.#lost();
    else await this.#renewed(lease, askedAt);
  }

  #lost(): void {
    this.#guard.lost();
    this.#lease = null;
    this.#ended.add();
  }

  async #renewed(lease: Lease, askedAt: number): Promise<void> {
    this.#askedAt = askedAt;
    if (this.#readyFor === lease) this.#guard.renewed(lease, askedAt);
    await this.#follower.look();
  }

  /** A ledger that does not answer sees by the lease that the node has gone. */
  async #leave(): Promise<void> {
    if (this.#lease !== null) await this.#node.ledger.leave(this.#lease).catch((error: unknown) => this.#note(messageOf(error)));
  }

  async #work(claim: Claim): Promise<void> {
    const stop = new AbortController();
    this.#running.set(keyOf(claim), { claim, stop });
    try {
      await this.#make(claim, stop.signal, AbortSignal.any([stop.signal, this.#signal]));
    } catch (error) {
      this.#note(`${claim.rollout_id}: ${messageOf(error)}`);
    } finally {
      this.#running.delete(keyOf(claim));
      this.#ended.add();
    }
  }

  async #make(claim: Claim, stopped: AbortSignal, signal: AbortSignal): Promise<void> {
    const { ledger, setup } = this.#node;
    const end = await this.#attempt(claim, signal);
    if (stopped.aborted) return;
    if (this.#signal.aborted && end.broken === "cancelled") {
      await this.#written(() => ledger.release(claim, false));
      return;
    }
    if (end.broken !== null && claim.failures < claim.spec.retries) {
      const next = { rollout_id: claim.rollout_id, attempt: claim.attempt + 1 };
      const sharedSetup = { ...setup, folder: this.#folderOf(claim, () => undefined) };
      await beforeNextAttempt(sharedSetup, next, { code: end.broken, failures: claim.failures + 1 }, signal);
      if (!stopped.aborted) await this.#written(() => ledger.release(claim, !this.#signal.aborted));
      return;
    }
    if ((await this.#written(() => ledger.finish(claim, end.result))) === "fenced")
      this.#note(`${claim.rollout_id}: attempt ${claim.attempt} is over or was replaced meanwhile, its result is left out`);
  }

  /** What it came to, and what of ours broke it. */
  async #attempt(claim: Claim, signal: AbortSignal): Promise<MadeAttempt> {
    const { task, task_hash } = claim;
    if (this.#watch.isSetAside({ ...task, task_hash }))
      return {
        result: nothingMeasured("task_set_aside", `too many rollouts of the task ${task.task_id} could not be graded here`),
        broken: null,
      };
    let payload: AttemptResult["payload"] = null;
    const keep = (at: AttemptResult["payload"]): void => {
      payload = at;
    };
    try {
      const outcome = await this.#outcome(claim, keep, signal);
      this.#watch.look(outcome.record);
      return { result: attemptResult(outcome, payload), broken: brokenBy(outcome.record) };
    } catch (error) {
      const failure = signal.aborted ? new AlidadeError("cancelled", "the node was stopped") : asAlidadeError(error, "internal");
      const isOurs = errorCodes[failure.code] === "infrastructure" && failure.code !== "internal";
      return { result: nothingMeasured(failure.code, failure.message), broken: isOurs ? failure.code : null };
    }
  }

  async #outcome(claim: Claim, keep: (payload: AttemptResult["payload"]) => void, signal: AbortSignal): Promise<RolloutOutcome> {
    const { setup, harnessNamed, session, admit } = this.#node;
    const harness = await harnessNamed(claim.spec.harness);
    checkPublicNetwork([claim.task], setup.network?.allow_public ?? false);
    admit?.(claim.task);
    await this.#prepare(claim);
    const rollouts = rolloutsOn({ ...setup, folder: this.#folderOf(claim, keep) });
    return rollouts.submit(attemptPlan(claim, harness, session), signal);
  }

  /** The trajectory is a blob before the ledger hears of it. */
  #folderOf({ set_id, rollout_id, attempt }: Claim, keep: (payload: AttemptResult["payload"]) => void): RunSetup["folder"] {
    const { blobs, setup } = this.#node;
    return {
      ...setup.folder,
      blobs: setup.folder.blobs,
      record: (record) => setup.folder.record(record),
      keep: async (trajectory) => keep(await putPacked(blobs, `${set_id}/${rollout_id}/${attempt}`, trajectory)),
    };
  }

  /** Images and the like, once for each environment; one that failed is tried again by the next attempt. */
  #prepare({ task }: Claim): Promise<void> {
    const { backend, run_id } = this.#node.setup;
    const key = hashOf(task.environment);
    const known = this.#prepared.get(key);
    if (known) return known;
    const options = { signal: this.#signal, progress: (text: string) => this.#note(text), user: { run_id, tasks: [task.task_id] } };
    const preparing = backend.prepare([task.environment], options).then(() => undefined);
    preparing.catch(() => this.#prepared.delete(key));
    this.#prepared.set(key, preparing);
    return preparing;
  }

  /** A finished rollout's GPU time is worth the wait for a disk; a node that is stopped meanwhile leaves it to the next attempt. */
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

  #note(text: string): void {
    this.#node.setup.onProgress({ type: "note", text });
  }
}

function keyOf({ rollout_id, attempt }: { rollout_id: string; attempt: number }): string {
  return `${rollout_id}#${attempt}`;
}
