/**
 * What is known of the engines' health. Calls that fail are no evidence by themselves: they are the reason for a probe of our
 * own, and its answer opens an engine's breaker or closes it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { AlidadeError } from "../../base/errors.ts";
import { Deadline } from "../../base/host/deadline.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { askCanary, type EngineState } from "./canary.ts";
import { conflict } from "./conflict.ts";
import { isAlive } from "./engine-health.ts";
import type { EngineLease } from "./engine-lease.ts";
import type { EngineSlot, RunningCall } from "./engine-slot.ts";
import { checkPolicy, wordOf } from "./engine-word.ts";

/** The pool whose engines are watched. */
export type WatchedPool = {
  /** The pool's own list, as it changes. */
  slots: readonly EngineSlot[];
  /** How long a call waits at a shut gate. */
  patienceSeconds: number;
  /** Aborted when the pool closes. */
  closing: AbortSignal;
  onError: (error: unknown, what: string) => void;
  /** Wakes the calls that wait for a change of the engines. */
  changed: () => void;
  /** Resolves with the next change of a gate, a policy or the list. */
  nextChange: () => Promise<void>;
  /** Something that ran on the engine is over. */
  freePlace: (slot: EngineSlot) => void;
};

/** A restart of an engine takes seconds at the least; asking sooner finds it down again. */
const restMs = 1_000;

export class EngineWatch {
  readonly #pool: WatchedPool;

  constructor(pool: WatchedPool) {
    this.#pool = pool;
  }

  /** `failure`: null when the engine did what it should. No call waits for the probe that may follow. */
  callEnded(lease: EngineLease, failure: AlidadeError | null): void {
    const { slot } = lease;
    if (failure === null || meansAlive(failure)) this.#isWell(slot);
    else if (meansUnwell(failure) && slot.breaker.failed()) void this.#judge(lease, failure).catch(() => undefined);
  }

  /**
   * The engine's state, by a probe of our own once its gate is open. A gate that stays closed for as long as a call would
   * wait means busy; a removed engine fails. Throws the signal's reason.
   */
  async stateOf(slot: EngineSlot, model: string, signal: AbortSignal): Promise<EngineState> {
    using patience = new Deadline(this.#pool.patienceSeconds * 1000);
    const limit = AbortSignal.any([signal, patience.signal]);
    for (;;) {
      while (slot.gate !== null && !limit.aborted) await untilAborted(this.#pool.nextChange(), limit).catch(() => undefined);
      signal.throwIfAborted();
      if (slot.gate !== null) return "busy";
      if (!this.#pool.slots.includes(slot)) return "fails";
      const fenced = new AbortController();
      // A fence waits for it, or cancels it, as for any call.
      const running: RunningCall = {
        cancel: (error) => fenced.abort(error),
        interrupt: () => ({ goes: "drains", why: "is a look of ours at the engine" }),
        policyChanged() {},
        freeze() {},
        thaw() {},
      };
      slot.inFlight.add(running);
      try {
        return await askCanary(slot.engine, model, AbortSignal.any([signal, fenced.signal]));
      } catch (error) {
        if (!fenced.signal.aborted) throw error;
      } finally {
        slot.inFlight.delete(running);
        this.#pool.freePlace(slot);
      }
    }
  }

  /**
   * True when an engine that accepts calls samples a token now; an idle engine shows nothing otherwise. Concurrent callers
   * share one probe per engine. False also when the signal fires.
   */
  async answers(signal: AbortSignal): Promise<boolean> {
    const known = new AbortController();
    const either = AbortSignal.any([signal, known.signal]);
    const open = this.#pool.slots.filter((slot) => !slot.isDraining);
    const samples = open.map(async (slot) => {
      if (!(await slot.question.join(either, (within) => this.#samples(slot, within)))) throw new Error(`${slot.name} does not sample`);
      return true;
    });
    try {
      return await Promise.any(samples);
    } catch {
      return false;
    } finally {
      known.abort();
    }
  }

  /**
   * Asks each engine again what it calls its weights. If that is another word than before (or the first one), and not the policy's,
   * the engine was restarted or loaded other weights, and they were not named here: from now on its policy is unknown (null).
   */
  async recheck(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#pool.slots.map((slot) => this.#recheck(slot, signal)));
  }

  /** Calls in line at another engine may go there again. */
  #isWell({ breaker }: EngineSlot): void {
    const wasOpen = breaker.isOpen;
    breaker.close();
    if (wasOpen) this.#pool.changed();
  }

  /** First the server's health route, which costs nothing; then a canary, because a server may answer while its generator hangs. */
  async #samples(slot: EngineSlot, signal: AbortSignal): Promise<boolean> {
    if (!(await isAlive(slot.engine.baseUrl, signal))) return false;
    await this.#recheck(slot, signal);
    const [model] = slot.facts.models;
    if (model === undefined) return true;
    const state = await this.stateOf(slot, model, signal);
    return state === "answers" || state === "slow";
  }

  /** Probes an engine after failed calls and, while the probe fails, repeats it; no call waits for this. */
  async #judge({ slot, model }: EngineLease, failure: AlidadeError): Promise<void> {
    const signal = this.#pool.closing;
    const isWell = async (): Promise<boolean> => (await this.stateOf(slot, model, signal)) !== "fails";
    if (!slot.breaker.checked(await isWell())) return;
    this.#pool.changed();
    this.#pool.onError(failure, `engine "${slot.name}" is left alone until it answers again`);
    while (slot.breaker.isOpen && this.#pool.slots.includes(slot)) {
      await sleep(restMs, undefined, { signal, ref: false });
      if (!(await isWell())) continue;
      await this.#recheck(slot, signal);
      this.#isWell(slot);
    }
  }

  async #recheck(slot: EngineSlot, signal: AbortSignal): Promise<void> {
    const word = await wordOf(slot.engine, signal);
    // Behind a fence its trainer is at work, and names what it has loaded when it is done.
    if (word === null || word === slot.word || slot.gate !== null) return;
    const { word: before, policy } = slot;
    slot.word = word;
    const check = checkPolicy(slot, word);
    // Without an earlier word, an engine whose weights have no name of their own is as unchecked as before.
    if (policy === null || check === "agrees" || (before === null && check === "unchecked")) return;
    slot.nameWeights({ policy: null, word });
    this.#pool.changed();
    const what = `it said ${before === null ? "no name" : `"${before}"`} and says "${word}" now, and policy "${policy.version}" was not named anew`;
    const todo = "name its weights with PUT /policy, or start again once they are loaded";
    this.#pool.onError(conflict(`${what}: its calls have no policy from here on; ${todo}`), `engine "${slot.name}" serves other weights`);
  }
}

/** The engine refused this request and is well. A budget that was spent meanwhile says nothing of it. */
function meansAlive(failure: AlidadeError): boolean {
  if (failure.code === "budget_spent") return false;
  return failure.owner !== "infrastructure" || failure.status === 429;
}

/** No connection, a 5xx, or a stream that broke off; not what we cancelled ourselves. */
function meansUnwell(failure: AlidadeError): boolean {
  return failure.code === "engine_unreachable" || failure.code === "engine_error";
}
