/**
 * The fence around a weight update, for one engine or all. The gate closes. Running calls end (drain), stay frozen in the
 * engine (hold), are cancelled (abort), or leave the engine with their tokens and go on from those behind the gate (continue).
 * The trainer loads the weights and names them, and the gate opens. A drain that
 * takes too long is no pause. An acknowledged pause lasts until `resume`, with an alarm, because only the trainer knows
 * whether the weights are complete. The fence lives in this process only: after a restart all gates are open, and
 * a node shuts those again that its ledger names.
 */

import { AlidadeError } from "../../base/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { PrefixReset } from "../../engines/index.ts";
import { conflict } from "./conflict.ts";
import type { EnginePool } from "./engine-pool.ts";
import { type EngineSlot, type Otherwise, weightUpdate } from "./engine-slot.ts";
import { assertAgree, checkPolicy, type EngineWord, wordOf } from "./engine-word.ts";
import { preferPolicy } from "./serving.ts";

export type PauseMode = "drain" | "hold" | "abort" | "continue";

/** Calls that were asked to go on: how many do, and what the others do, by the reason that keeps them from it. */
export type InterruptedCalls = { continued: number; drained: Record<string, number>; again: Record<string, number> };

type Fence = {
  id: string;
  slots: EngineSlot[];
  mode: PauseMode;
  since: number;
  acknowledged: boolean;
  /** Aborted when its gate is open again. */
  over: AbortController;
  alarm: NodeJS.Timeout | null;
  alarms: number;
};

/** How weights are named: those within the fence, or of the named engines; by default those of the policy. */
export type NewPolicy = {
  fence?: string | undefined;
  engines?: string[] | undefined;
  policy: Policy;
  engineVersion?: string | undefined;
  signal: AbortSignal;
};

/** A weight update takes seconds to a minute; a longer one raises an alarm. */
const defaultAlarmSeconds = 120;
/** Emptying a prefix cache takes milliseconds. An engine that does not answer is not waited for with the gate closed. */
const resetWithinMs = 10_000;

export class WeightFences implements Disposable {
  readonly #pool: EnginePool;
  readonly #fences = new Map<string, Fence>();
  readonly #alarmMs: number;
  readonly #onError: (error: unknown, what: string) => void;

  constructor(pool: EnginePool, options: { alarmSeconds?: number | undefined; onError: (error: unknown, what: string) => void }) {
    this.#pool = pool;
    this.#alarmMs = (options.alarmSeconds ?? defaultAlarmSeconds) * 1000;
    this.#onError = options.onError;
  }

  /**
   * Closes the gate of the named engines (default: those of the policy). With `hold` it resolves at once. With `drain` and `abort`
   * it resolves when the running calls have ended, and with `continue` when they have left the engine. Throws `drain_timeout` if
   * they did not end in time, if the caller left, or if a resume came meanwhile. The gate is open again then. `id`: of a fence
   * that outlives this process. `otherwise`: with `continue`, what a call does that cannot go on; by default it ends first.
   */
  async pause(options: {
    id?: string;
    engines?: string[] | undefined;
    mode: PauseMode;
    otherwise?: Otherwise | undefined;
    timeoutSeconds: number;
    signal: AbortSignal;
  }) {
    const slots = this.#free(options.engines);
    const fence: Fence = {
      id: options.id ?? newId("fence"),
      slots,
      mode: options.mode,
      since: Date.now(),
      acknowledged: false,
      over: new AbortController(),
      alarm: null,
      alarms: 0,
    };
    for (const slot of slots) slot.shut({ fence: fence.id, since: fence.since, why: weightUpdate });
    this.#fences.set(fence.id, fence);
    const running = slots.reduce((count, slot) => count + slot.inFlight.size, 0);
    if (options.mode === "hold") for (const slot of slots) for (const lease of slot.inFlight) lease.freeze(fence.since);
    if (options.mode === "abort") for (const slot of slots) slot.cancelAll(aborted());
    const interrupted = options.mode === "continue" ? interruptAll(slots, options.otherwise ?? "drain") : null;
    if (options.mode !== "hold") await this.#drain(fence, options.timeoutSeconds, options.signal);
    fence.acknowledged = true;
    this.#startAlarm(fence);
    const held = slots.reduce((count, slot) => count + slot.inFlight.size, 0);
    const told = { fence: fence.id, engines: slots.map((slot) => slot.name), mode: fence.mode, drained: held === 0, running, held };
    return { ...told, ...(interrupted && { interrupted }) };
  }

  /**
   * Names the policy of the fenced engines, or of all where no fence is given. Throws as `check`. `checked`: engines that
   * reported this version; the others report none. `prefix_cache`: the result of emptying each engine's cache of the old weights.
   */
  async setPolicy(options: NewPolicy) {
    const words = await this.#wordsFor(options);
    for (const { slot, word } of words) slot.nameWeights({ ...options, word });
    this.#pool.changed();
    const slots = words.map(({ slot }) => slot);
    return { policy: options.policy, ...checkedBy(options, words), prefix_cache: await resetPrefixes(slots, options.signal) };
  }

  /** Throws `request_invalid` (409) where an engine itself reports another version. Names nothing. */
  async check(options: NewPolicy) {
    return checkedBy(options, await this.#wordsFor(options));
  }

  /**
   * Opens the gate. `prefix_cache` as in `setPolicy`; empty where the pause was not acknowledged, for then no weights were
   * loaded. Throws `not_found` for a fence that there is not, and `request_invalid` (409) where an engine says that it
   * serves other weights than those of its name.
   */
  async resume(id: string, signal: AbortSignal) {
    const fence = this.#fenceOf(id);
    const prefix_cache = await this.ready(id, signal);
    this.open(id);
    return { fence: id, engines: fence.slots.map((slot) => slot.name), paused_seconds: (Date.now() - fence.since) / 1000, prefix_cache };
  }

  /** All of `resume` but the opening of the gate, with its errors. */
  async ready(id: string, signal: AbortSignal): Promise<Record<string, PrefixReset>> {
    const { slots, acknowledged } = this.#fenceOf(id);
    if (!acknowledged) return {};
    for (const slot of slots) {
      const word = await wordOf(slot.engine, signal);
      assertAgree(slot, [{ name: slot.name, word }], "name its weights with PUT /policy before the gate is opened");
      slot.word = word ?? slot.word;
    }
    return resetPrefixes(slots, signal);
  }

  /** Without a look at the weights: for a fence that is known to be over. Nothing where there is none. */
  open(id: string): void {
    const fence = this.#fences.get(id);
    if (fence) this.#open(fence);
  }

  /** For `/health`: what is shut, for how long, and whether that is alarming. */
  status() {
    return [...this.#fences.values()].map((fence) => ({
      fence: fence.id,
      mode: fence.mode,
      engines: fence.slots.map((slot) => slot.name),
      acknowledged: fence.acknowledged,
      seconds: (Date.now() - fence.since) / 1000,
      running: fence.slots.reduce((count, slot) => count + slot.inFlight.size, 0),
      alarm: fence.alarms > 0,
    }));
  }

  [Symbol.dispose](): void {
    for (const fence of this.#fences.values()) if (fence.alarm) clearInterval(fence.alarm);
  }

  async #wordsFor(options: NewPolicy) {
    const slots = this.#within(options.fence, options.engines);
    const words = await Promise.all(
      slots.map(async (slot) => ({ slot, name: slot.name, word: await wordOf(slot.engine, options.signal) })),
    );
    assertAgree(options, words);
    return words;
  }

  async #drain(fence: Fence, timeoutSeconds: number, signal: AbortSignal): Promise<void> {
    const limit = AbortSignal.any([signal, fence.over.signal, AbortSignal.timeout(timeoutSeconds * 1000)]);
    try {
      for (const slot of fence.slots) await this.#pool.drained(slot, limit);
      fence.over.signal.throwIfAborted();
    } catch {
      // The gate may be another fence's by now: nothing of it is this one's to open.
      if (fence.over.signal.aborted)
        throw new AlidadeError("drain_timeout", `fence ${fence.id} was resumed while it drained: calls are flowing again, pause anew`);
      const running = fence.slots.reduce((count, slot) => count + slot.inFlight.size, 0);
      this.#open(fence);
      throw new AlidadeError(
        "drain_timeout",
        signal.aborted
          ? "the caller of the pause has left, so the pause is cancelled and calls are flowing again"
          : `${running} calls were still running after ${timeoutSeconds} s: the pause is cancelled, calls are flowing again. Pause with a longer timeout_seconds, or with mode "abort"`,
      );
    }
  }

  #open(fence: Fence): void {
    this.#fences.delete(fence.id);
    fence.over.abort();
    if (fence.alarm) clearInterval(fence.alarm);
    const now = Date.now();
    for (const slot of fence.slots) {
      slot.open(fence.id);
      for (const lease of slot.inFlight) lease.thaw(now);
    }
    this.#pool.changed();
  }

  #startAlarm(fence: Fence): void {
    fence.alarm = setInterval(() => {
      fence.alarms++;
      const names = fence.slots.map((slot) => slot.name).join(", ");
      const seconds = Math.round((Date.now() - fence.since) / 1000);
      const what = `${names} paused for ${seconds} s, ${this.#pool.waiting} calls are waiting`;
      this.#onError(
        new AlidadeError("engine_paused", `the gate opens with POST /resume {"fence": "${fence.id}"}, and not by itself`),
        what,
      );
    }, this.#alarmMs);
    fence.alarm.unref();
  }

  #free(names: string[] | undefined): EngineSlot[] {
    const slots = names === undefined ? preferPolicy(this.#pool.slots) : [...new Set(names)].map((name) => this.#pool.named(name));
    if (slots.length === 0) throw conflict("there is no engine to pause");
    for (const slot of slots) {
      const other = slot.holds.find(({ fence }) => this.#fences.has(fence));
      if (other) throw conflict(`engine "${slot.name}" is paused already, by fence ${other.fence}: resume that one first`);
    }
    return slots;
  }

  #within(id: string | undefined, names: string[] | undefined): EngineSlot[] {
    const named = names?.map((name) => this.#pool.named(name));
    if (id === undefined) return named ?? preferPolicy(this.#pool.slots);
    const fence = this.#fenceOf(id);
    const outside = named?.find((slot) => !fence.slots.includes(slot));
    if (outside) throw conflict(`engine "${outside.name}" is not within fence ${id}`);
    return named ?? fence.slots;
  }

  #fenceOf(id: string): Fence {
    const fence = this.#fences.get(id);
    if (fence) return fence;
    throw new AlidadeError("not_found", `there is no fence "${id}": it was resumed, its drain timed out, or the proxy was restarted`, {
      param: "fence",
    });
  }
}

/**
 * Old keys and values are not reused, because the salt changes, and are removed where the engine has a route for it.
 * Results by engine; the gate opens in any case.
 */
async function resetPrefixes(slots: EngineSlot[], signal: AbortSignal): Promise<Record<string, PrefixReset>> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(resetWithinMs)]);
  const resets = slots.map(async (slot): Promise<[string, PrefixReset]> => {
    slot.renewSalt();
    return [slot.name, (await slot.engine.resetPrefixCache?.(limit).catch(() => "failed" as const)) ?? "not_supported"];
  });
  return Object.fromEntries(await Promise.all(resets));
}

function checkedBy(options: NewPolicy, words: EngineWord[]) {
  const checked = words.filter(({ word }) => checkPolicy(options, word) === "agrees").map(({ name }) => name);
  return { engines: words.map(({ name }) => name), checked };
}

function interruptAll(slots: readonly EngineSlot[], otherwise: Otherwise): InterruptedCalls {
  const all = slots.flatMap((slot) => [...slot.inFlight]).map((lease) => lease.interrupt(otherwise));
  const byReason = (goes: "drains" | "again"): Record<string, number> => {
    const counts = new Map<string, number>();
    for (const one of all) if (one.goes === goes) counts.set(one.why, (counts.get(one.why) ?? 0) + 1);
    return Object.fromEntries(counts);
  };
  return { continued: all.filter(({ goes }) => goes === "on").length, drained: byReason("drains"), again: byReason("again") };
}

function aborted(): AlidadeError {
  return new AlidadeError("engine_paused", "the generation was cancelled for a weight update: try again");
}
