/** The attempts of one machine, made with `rollouts/` as it is. */

import { AlidadeError, asAlidadeError, errorCodes } from "../../base/errors.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { LogLine } from "../../base/schema/session-log.ts";
import type { SessionOptions } from "../../base/schema/session-spec.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Harness } from "../../harnesses/index.ts";
import { countFinished, toRecording } from "../../proxy/index.ts";
import { assertTakesTask, assertUserServed, checkPublicNetwork } from "../../rollouts/accepted/index.ts";
import { type ResumePlan, type RunSetup, toResumePlan } from "../../rollouts/index.ts";
import { type MadeAttempt, makeAttempt } from "../../rollouts/line/index.ts";
import { withServices } from "../../sandboxes/index.ts";
import { type Blobs, type LogCopy, packLog, packPictures, putAllPacked, readLogCopy } from "../blobs/index.ts";
import { type AttemptResult, type Claim, type ClaimedSets, type Ledger, noPlaceToFork, nothingMeasured, parks } from "../ledger/index.ts";
import { assertTrust } from "./assert-trust.ts";
import { attemptPlan } from "./attempt-plan.ts";
import { attemptResult } from "./attempt-result.ts";
import type { NodeEnd, Stops } from "./claim-loop.ts";
import { GroupForks } from "./group-forks.ts";
import type { LeftAttempt, LeftAttempts } from "./left-attempts.ts";
import { LogCopier } from "./log-copier.ts";

export type AttemptSetup = {
  ledger: Pick<Ledger, "result" | "cancel" | "isShared">;
  /** Where other nodes work for the ledger, the logs of sessions are copied there too. */
  blobs: Blobs;
  /** What its rollouts share. Their trajectories go to the blobs. */
  setup: Omit<RunSetup, "folder"> & { folder: Pick<RunSetup["folder"], "blobs" | "record"> };
  /** null: the operator's own. Throws `harness_unknown`. */
  harnessNamed(name: string | null): Promise<Harness>;
  /** Throws what this machine has no room for, or does not take; all tasks are taken where left out. */
  admit?: (task: Task) => void;
  /** Options of sessions that a set leaves out. */
  session: Partial<SessionOptions>;
  /** What an earlier process of this node was at; nothing where left out. */
  left?: LeftAttempts;
};

type Payload = AttemptResult["payload"];

/** Looks for the copies of so many earlier attempts. After more kills without a finished call the ledger sets the rollout aside. */
const mostLooked = 10;

/** Parked attempts of this process whose sessions it can go on with. Those before them are found by their copies, or begun anew. */
const mostRemembered = 4_096;

/** Keeps parts of an attempt outside of this machine. */
type Kept = { keep: (payload: Payload) => void; copier?: LogCopier };

export class Attempts {
  readonly #node: AttemptSetup;
  /** Fires when the node is stopped. */
  readonly #stopped: AbortSignal;
  readonly #prepared = new Map<string, Promise<void>>();
  readonly #forks: GroupForks;
  readonly #left: LeftAttempts;
  /** Rollouts in `#left` that this process was at itself. */
  readonly #remembered = new Set<string>();

  constructor(node: AttemptSetup, stopped: AbortSignal) {
    this.#node = node;
    this.#stopped = stopped;
    this.#forks = new GroupForks(node);
    this.#left = node.left ?? new Map();
  }

  /** What it came to, and what of ours broke it. Throws the reason of `drain` alone. */
  async make(claim: Claim, { signal, drain }: Stops, slot: ClaimedSets): Promise<NodeEnd> {
    let payload: Payload = null;
    const keep = (at: Payload): void => {
      payload = at;
    };
    const copier = this.#copierOf(claim);
    const settled = () => copier.remove();
    const known = this.#left.get(claim.rollout_id);
    try {
      const made = await this.#made(claim, slot, { keep, copier }, { signal, drain });
      if (made === null) return { result: null, record: null, broken: null };
      const { record, trajectory, broken } = made;
      await copier.close(broken);
      const goesOn = () => this.#remember(claim, record, known);
      return { result: attemptResult({ record, trajectory }, payload), record, broken, settled, goesOn };
    } catch (error) {
      if (drain.aborted && error === drain.reason && !signal.aborted) throw error;
      const failure = signal.aborted ? new AlidadeError("cancelled", "the node was stopped") : asAlidadeError(error, "internal");
      const isOurs = errorCodes[failure.code] === "infrastructure" && failure.code !== "internal";
      const broken = isOurs ? failure.code : null;
      await copier.close(broken);
      const goesOn = () => this.#remember(claim, null, known);
      return { result: nothingMeasured(failure.code, failure.message), record: null, broken, settled, goesOn };
    }
  }

  /** Returns null for a fork that its group has no place for; the fork is cancelled. */
  async #made(claim: Claim, slot: ClaimedSets, kept: Kept, { signal, drain }: Stops): Promise<MadeAttempt | null> {
    const { setup, harnessNamed, session, admit } = this.#node;
    const harness = await harnessNamed(claim.spec.harness);
    checkPublicNetwork(claim.task, setup.network ?? { allow_public: false }, setup.graders);
    assertTrust(claim, setup);
    admit?.(claim.task);
    assertTakesTask(claim.task, harness);
    await assertUserServed(claim.task, setup.proxy.pool);
    const fork = await this.#forks.planOf(claim, harness);
    if (fork === null) {
      await this.#node.ledger.cancel({ set: claim.set_id, rollout: claim.rollout_id }, noPlaceToFork);
      return null;
    }
    // A fork is not resumed: it begins behind its turn again, and everything before is replayed anyway.
    const own = attemptPlan(claim, harness, session);
    const isPinned = own.session?.policy_mode === "pin";
    const resume = fork === "begins" ? await this.#resumeOf(claim, harness, isPinned, AbortSignal.any([signal, drain])) : null;
    const plan = { ...own, ...(fork !== "begins" && fork), ...(resume && { resume }) };
    setup.proxy.pool.assertPolicyOf(plan.session);
    await this.#prepare(claim);
    const slots = (slot === "evaluations" && setup.slots.evaluation) || setup.slots;
    const folder = this.#folderOf(claim, fork === "begins" ? kept : { keep: kept.keep }, signal);
    const made = await makeAttempt({ ...setup, slots, folder }, plan, signal, drain);
    // A taker that was stopped before it opened the session has used nothing: another one may go on from the log.
    const used = made.record.session_id === null ? [] : [claim.parked?.from.rollout_id ?? claim.rollout_id];
    for (const rollout of [claim.rollout_id, ...used]) {
      this.#left.delete(rollout);
      this.#remembered.delete(rollout);
    }
    return made;
  }

  /**
   * A rollout of a later group may go on from it here. Returns false if no call of it has finished. `known`: what an earlier attempt of it
   * had come to; where this one opened no session, that still stands.
   */
  async #remember(claim: Claim, record: RolloutRecord | null, known: LeftAttempt | undefined): Promise<boolean> {
    if (record === null || record.session_id === null) {
      if (known !== undefined) this.#left.set(claim.rollout_id, known);
      return known !== undefined || (claim.attempt > 1 && claim.parked === null);
    }
    const { rollout_id, attempt, session_id, harness, harness_version, task_hash, resume } = record;
    const log = await this.#node.setup.proxy.sessions.store.read(session_id).catch(() => []);
    if (finishedIn(session_id, log) === 0) return false;
    this.#left.set(rollout_id, { attempt, session_id, harness, harness_version, task_hash, resume });
    this.#remembered.add(rollout_id);
    const [oldest] = this.#remembered;
    if (this.#remembered.size > mostRemembered && oldest !== undefined) {
      this.#remembered.delete(oldest);
      this.#left.delete(oldest);
    }
    return true;
  }

  /** null: nothing was sampled before for the rollout, as far as this node knows. */
  async #resumeOf(claim: Claim, harness: Harness, isPinned: boolean, stop: AbortSignal): Promise<ResumePlan | null> {
    const own = await this.#resumeOfDead(claim, harness, stop);
    if (own !== null || claim.parked === null) return own;
    const { from, attempt } = claim.parked;
    const anew = (why: string): ResumePlan => ({ how: "again", again_tokens: 0, why });
    if (isPinned) return anew("its session is pinned to one policy (`policy_mode: pin`), and a parked one may have another");
    // What the infrastructure broke is begun anew: a replay would go where it broke.
    if (claim.failures > 0) return anew(`an attempt that went on from the parked rollout ${from.rollout_id} was broken`);
    const plan = await this.#resumeOfDead({ ...claim, rollout_id: from.rollout_id, attempt: attempt + 1 }, harness, stop);
    if (plan === null) return anew(`this node has no log of the parked rollout ${from.rollout_id} with a finished call`);
    return plan.how === "replay" ? { ...plan, parked_from: from } : plan;
  }

  /** null: no process that died has sampled for the rollout, or this node knows of none. */
  async #resumeOfDead(claim: Claim, harness: Harness, stop: AbortSignal): Promise<ResumePlan | null> {
    const { setup } = this.#node;
    const { rollout_id, task, task_hash } = claim;
    const own = this.#left.get(rollout_id);
    const dead = { task, task_hash, harness, wanted: setup.resume ?? "replay" };
    const { store } = setup.proxy.sessions;
    const copy = await this.#copyOf(claim, own?.attempt ?? 0, stop);
    if (copy === null || copy instanceof AlidadeError) {
      // The node's own record is older than an unreadable copy, and whole.
      const plan = own === undefined ? null : await toResumePlan(store, { ...dead, record: own });
      return plan ?? (copy && { how: "again", again_tokens: own?.resume?.again_tokens ?? 0, why: copy.message });
    }
    const { head, entries, pictures } = copy;
    const plan = await toResumePlan({ read: async () => entries }, { ...dead, record: head });
    if (plan?.how !== "replay") return plan;
    // An earlier attempt of this node may still be ending. Its log then holds more calls than the copy.
    const local = await store.read(head.session_id).catch(() => []);
    if (finishedIn(head.session_id, local) > finishedIn(head.session_id, entries)) return toResumePlan(store, { ...dead, record: head });
    for (const { sha256, base64 } of pictures) store.media?.keep(sha256, Buffer.from(base64, "base64"));
    await store.replace(head.session_id, entries);
    return plan;
  }

  /** Returns the copy of the newest attempt of another node after `own`; null: there is none. Returns an error if it cannot be read. */
  async #copyOf({ set_id, rollout_id, attempt }: Claim, own: number, stop: AbortSignal): Promise<LogCopy | AlidadeError | null> {
    const { ledger, blobs } = this.#node;
    if (!ledger.isShared) return null;
    try {
      for (let before = attempt - 1; before > Math.max(own, attempt - 1 - mostLooked); before -= 1) {
        const copy = await readLogCopy(blobs, `${set_id}/${rollout_id}`, before, stop);
        if (copy !== null) return copy;
      }
      return null;
    } catch (error) {
      stop.throwIfAborted();
      return asAlidadeError(error, "store_error");
    }
  }

  #copierOf({ set_id, rollout_id, attempt, spec }: Claim): LogCopier {
    const { ledger, blobs, setup } = this.#node;
    const isOn = ledger.isShared && setup.resume !== "again";
    const { store } = setup.proxy.sessions;
    return new LogCopier({
      isOn,
      blobs,
      name: `${set_id}/${rollout_id}`,
      attempt,
      store,
      parks: parks(spec),
      note: (text) => this.note(text),
    });
  }

  /** The trajectory is a blob, with the record of its attempt, before the ledger hears of it. */
  #folderOf({ set_id, rollout_id, attempt, spec }: Claim, { keep, copier }: Kept, signal: AbortSignal): RunSetup["folder"] {
    const { blobs, setup } = this.#node;
    return {
      ...setup.folder,
      blobs: setup.folder.blobs,
      record: async (record) => {
        await setup.folder.record(record);
        const session = record.state === "run" && record.session_id !== null ? setup.proxy.sessions.get(record.session_id) : undefined;
        if (session) await copier?.follow(session, record, signal);
      },
      keep: async (trajectory, record) => {
        const { store } = setup.proxy.sessions;
        const pictures = packPictures(trajectory, store.media ?? null);
        const log = spec.branching === undefined || record.session_id === null ? [] : packLog(await store.read(record.session_id));
        keep(await putAllPacked(blobs, `${set_id}/${rollout_id}/${attempt}`, [trajectory, record, ...pictures, ...log], signal));
      },
    };
  }

  /** Images and the like, once for each environment; one that failed is tried again by the next attempt. */
  #prepare({ task }: Claim): Promise<void> {
    const { backend, run_id } = this.#node.setup;
    const key = hashOf(task.environment);
    const known = this.#prepared.get(key);
    if (known) return known;
    const options = { signal: this.#stopped, progress: (text: string) => this.note(text), user: { run_id, tasks: [task.task_id] } };
    const preparing = backend.prepare(withServices(task.environment), options).then(() => undefined);
    preparing.catch(() => this.#prepared.delete(key));
    this.#prepared.set(key, preparing);
    return preparing;
  }

  note(text: string): void {
    this.#node.setup.onProgress({ type: "note", text });
  }
}

/** Returns 0 if the log cannot be read. */
function finishedIn(id: string, lines: readonly LogLine[]): number {
  try {
    return countFinished(toRecording(id, lines)).calls;
  } catch {
    return 0;
  }
}
