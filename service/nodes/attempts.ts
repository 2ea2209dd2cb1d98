/** The attempts of one machine, made with `rollouts/` as it is. */

import { AlidadeError, asAlidadeError, type ErrorCode, errorCodes } from "../../base/errors.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { SessionOptions } from "../../base/schema/session-spec.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Harness } from "../../harnesses/index.ts";
import { checkPublicNetwork } from "../../rollouts/accepted/index.ts";
import {
  beforeNextAttempt,
  brokenBy,
  NullWatch,
  type RolloutOutcome,
  type RunSetup,
  rolloutsOn,
  watchOfService,
} from "../../rollouts/index.ts";
import { withServices } from "../../sandboxes/index.ts";
import { type Blobs, putAllPacked } from "../blobs/index.ts";
import { type AttemptResult, type Claim, type ClaimedSets, nothingMeasured, setAside } from "../ledger/index.ts";
import { assertTrust } from "./assert-trust.ts";
import { attemptPlan } from "./attempt-plan.ts";
import { attemptResult } from "./attempt-result.ts";
import type { MadeAttempt } from "./claim-loop.ts";

export type AttemptSetup = {
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

type Payload = AttemptResult["payload"];

export class Attempts {
  readonly #node: AttemptSetup;
  /** Fires when the node is stopped. */
  readonly #stopped: AbortSignal;
  readonly #prepared = new Map<string, Promise<void>>();
  readonly #watch: NullWatch;

  constructor(node: AttemptSetup, stopped: AbortSignal) {
    this.#node = node;
    this.#stopped = stopped;
    this.#watch = new NullWatch(node.setup.max_null_share, (text) => this.note(text), watchOfService);
  }

  /** What it came to, and what of ours broke it. */
  async make(claim: Claim, signal: AbortSignal, slot: ClaimedSets): Promise<MadeAttempt> {
    const { task, task_hash } = claim;
    const why = this.#node.setup.guard?.aside.get(claim.rollout_id);
    if (why !== undefined) return { result: setAside(why), broken: null };
    if (this.#watch.isSetAside({ ...task, task_hash }))
      return {
        result: nothingMeasured("task_set_aside", `too many rollouts of the task ${task.task_id} could not be graded here`),
        broken: null,
      };
    let payload: Payload = null;
    const keep = (at: Payload): void => {
      payload = at;
    };
    try {
      const outcome = await this.#outcome(claim, slot, keep, signal);
      this.#watch.look(outcome.record);
      return { result: attemptResult(outcome, payload), broken: brokenBy(outcome.record) };
    } catch (error) {
      const failure = signal.aborted ? new AlidadeError("cancelled", "the node was stopped") : asAlidadeError(error, "internal");
      const isOurs = errorCodes[failure.code] === "infrastructure" && failure.code !== "internal";
      return { result: nothingMeasured(failure.code, failure.message), broken: isOurs ? failure.code : null };
    }
  }

  async #outcome(claim: Claim, slot: ClaimedSets, keep: (payload: Payload) => void, signal: AbortSignal): Promise<RolloutOutcome> {
    const { setup, harnessNamed, session, admit } = this.#node;
    const harness = await harnessNamed(claim.spec.harness);
    checkPublicNetwork(claim.task, setup.network ?? { allow_public: false }, setup.graders);
    assertTrust(claim, setup);
    admit?.(claim.task);
    const plan = attemptPlan(claim, harness, session);
    setup.proxy.pool.assertPolicyOf(plan.session);
    await this.#prepare(claim);
    const slots = (slot === "evaluations" && setup.slots.evaluation) || setup.slots;
    const rollouts = rolloutsOn({ ...setup, slots, folder: this.#folderOf(claim, keep, signal) });
    return rollouts.submit(plan, signal);
  }

  /** What broke it would break the next one at once. */
  rest(claim: Claim, code: ErrorCode, signal: AbortSignal): Promise<void> {
    const next = { rollout_id: claim.rollout_id, attempt: claim.attempt + 1 };
    const setup = { ...this.#node.setup, folder: this.#folderOf(claim, () => undefined, signal) };
    return beforeNextAttempt(setup, next, { code, failures: claim.failures + 1 }, signal);
  }

  /** The trajectory is a blob, with the record of its attempt, before the ledger hears of it. */
  #folderOf({ set_id, rollout_id, attempt }: Claim, keep: (payload: Payload) => void, signal: AbortSignal): RunSetup["folder"] {
    const { blobs, setup } = this.#node;
    return {
      ...setup.folder,
      blobs: setup.folder.blobs,
      record: (record) => setup.folder.record(record),
      keep: async (...made) => keep(await putAllPacked(blobs, `${set_id}/${rollout_id}/${attempt}`, made, signal)),
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
