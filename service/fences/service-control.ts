/**
 * Pause, policy and resume for the engines of all nodes. The ledger holds what is to be so before any node carries it out, so
 * that neither a service nor a node that died in between opens a gate: half-loaded weights are never sampled, and no sample
 * is stamped with a name of earlier weights. Naming and opening are asked of all nodes first, and done at all or at none.
 */
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import type { Policy } from "../../base/schema/policy.ts";
import { beatSeconds, type FenceOrder, type Ledger, leaseSeconds } from "../ledger/index.ts";
import { fenceOf, withAcknowledged, withFence, withName, withoutFence, withQuestion } from "./control-changes.ts";
import type { HeardAnswers } from "./heard-answers.ts";
import { NodeAnswers } from "./node-answers.ts";

export type PauseOrder = {
  fence?: string | undefined;
  engines?: string[] | undefined;
  mode: FenceOrder["mode"];
  otherwise?: FenceOrder["otherwise"];
  timeout_seconds: number;
};
export type PolicyOrder = {
  policy: Policy;
  fence?: string | undefined;
  engines?: string[] | undefined;
  engineVersion?: string | undefined;
};

/** A node that died is found dead after its lease and one look; all others answer within seconds. */
const deadAfterSeconds = leaseSeconds + 2 * beatSeconds;
/** An engine may take ten seconds to say its name, and as long to empty its cache. */
const answerSeconds = deadAfterSeconds + 20;

export class ServiceControl {
  readonly #ledger: Ledger;
  readonly #answers: NodeAnswers;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    this.#answers = new NodeAnswers(ledger);
  }

  /**
   * Answers when all nodes have drained. The same fence may be asked for again: it goes on. Throws what a node refuses, and
   * `drain_timeout` when one has not drained in time or the caller left; then the gates are opened, except where all had
   * drained before.
   */
  async pause({ fence = newId("fence"), engines, mode, otherwise, timeout_seconds }: PauseOrder, signal: AbortSignal) {
    const wanted = { fence, mode, ...(otherwise && { otherwise }), engines: engines ?? null };
    const { order } = await this.#ledger.order((state, order) => withFence(state, { ...wanted, order }));
    // Calls have the time that was given; nodes a little more to say that these have ended.
    const seconds = mode === "hold" ? deadAfterSeconds : timeout_seconds + beatSeconds;
    try {
      const heard = await this.#answers.to(order, AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]));
      heard.assertKnown(engines);
      await this.#ledger.order((state) => withAcknowledged(state, fence, order));
      const held = heard.sum("held");
      const told = { fence, engines: heard.engines, mode, drained: held === 0, running: heard.sum("running"), held, nodes: heard.nodes };
      return { ...told, ...(mode === "continue" && { interrupted: heard.by("interrupted") }) };
    } catch (error) {
      throw await this.#notPaused(fence, order, error);
    }
  }

  async setPolicy({ policy, fence, engines, engineVersion }: PolicyOrder, signal: AbortSignal) {
    const name = { policy, engine_version: engineVersion ?? null };
    const within = fence === undefined ? null : fenceOf(await this.#ledger.control(), fence).engines;
    const question = { asks: "may these weights be named so?", fence: fence ?? null, engines: engines ?? within, ...name } as const;
    (await this.#ask(question, signal)).assertKnown(engines);
    const { order } = await this.#ledger.order((state, order) => withName(state, { ...name, engines: engines ?? within, order }));
    const heard = await this.#answers.to(order, patience(signal));
    return { policy, engines: heard.engines, checked: heard.by("checked"), prefix_cache: heard.by("prefix_cache") };
  }

  /** A fence that was resumed before is no error: the answer to the first resume may have been lost. */
  async resume(fence: string, signal: AbortSignal) {
    const state = await this.#ledger.control();
    const isOver = state.resumed.includes(fence) && !state.fences.some((one) => one.fence === fence);
    if (isOver) return { fence, engines: [], paused_seconds: 0, prefix_cache: {} };
    const { since, acknowledged } = fenceOf(state, fence);
    // Without an acknowledgement no weights were loaded.
    const heard = acknowledged ? await this.#ask({ asks: "may this fence be opened?", fence }, signal) : null;
    const { order } = await this.#ledger.order((now) => withoutFence(now, fence));
    await this.#answers.following(order, patience(signal));
    const paused_seconds = (Date.now() - since) / 1000;
    return { fence, engines: heard?.engines ?? [], paused_seconds, prefix_cache: heard?.by("prefix_cache") ?? {} };
  }

  /** For `GET /health`. */
  async status(signal: AbortSignal) {
    const { fences } = await this.#ledger.control(signal);
    return fences.map(({ order, since, ...fence }) => ({ ...fence, seconds: (Date.now() - since) / 1000 }));
  }

  async #ask(question: Parameters<typeof withQuestion>[1], signal: AbortSignal): Promise<HeardAnswers> {
    const { order } = await this.#ledger.order((state, order) => withQuestion(state, question, order));
    try {
      return await this.#answers.to(order, patience(signal));
    } finally {
      await this.#ledger.order((state) => ({ ...state, questions: state.questions.filter((one) => one.order !== order) }));
    }
  }

  /** The gates open again, except where all nodes had drained before: then weights may be half-loaded. */
  async #notPaused(fence: string, order: number, error: unknown): Promise<unknown> {
    const { fences } = await this.#ledger.order((state) => {
      const isOurs = state.fences.some((one) => one.fence === fence && one.order === order && !one.acknowledged);
      return isOurs ? withoutFence(state, fence) : state;
    });
    if (!(error instanceof AlidadeError) || error.code !== "drain_timeout") return error;
    const isShut = fences.some((one) => one.fence === fence);
    const now = isShut ? `fence ${fence} stays shut` : "the pause is cancelled, calls are flowing again";
    return new AlidadeError("drain_timeout", `${messageOf(error)}: ${now}. Pause with a longer timeout_seconds, or with mode "abort"`);
  }
}

function patience(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(answerSeconds * 1000)]);
}
