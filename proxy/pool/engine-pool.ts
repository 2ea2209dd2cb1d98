/**
 * The engines behind one proxy: they come and go, calls wait at their gates and take places at them (choose-engine.ts
 * says at which), and those that fail are left alone until they answer again. How many calls an engine gets at once is
 * limited only where its operator says so: what is too much for it, it says itself (429, 503).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineFacts } from "../../engines/index.ts";
import { AlidadeError } from "../../errors.ts";
import { Deadline } from "../../host/deadline.ts";
import { untilAborted } from "../../host/until-aborted.ts";
import { isPinned, type SessionOptions } from "../../schema/session-spec.ts";
import { assertModelOf } from "./assert-served.ts";
import { askCanary, type EngineState } from "./canary.ts";
import { candidates, pick, type RoutedModel, routedModelOf } from "./choose-engine.ts";
import { conflict } from "./conflict.ts";
import { isAlive } from "./engine-health.ts";
import { EngineLease, type LeaseEvents } from "./engine-lease.ts";
import { assertTrainable, EngineSlot, type EngineSpec, type RunningCall } from "./engine-slot.ts";
import { assertAgree, checkPolicy, wordOf } from "./engine-word.ts";
import { isOfPolicy, ownModel, type Placed, type Wish } from "./own-model.ts";
import { probeEngine } from "./probe-engine.ts";
import type { EngineRoute } from "./routes.ts";
import { preferPolicy } from "./serving.ts";
import { WaitingLine } from "./waiting-line.ts";

export type EnterOptions = {
  /** Engines that have just failed this call: taken only where there is no other. */
  avoid: ReadonlySet<EngineSlot>;
  signal: AbortSignal;
  /** Called as it takes its place, before another call can take one. */
  onPlaced: (lease: EngineLease) => void;
} & LeaseEvents;

export type EnginePoolOptions = {
  routes?: readonly EngineRoute[];
  pauseWaitSeconds?: number;
  onError: (error: unknown, what: string) => void;
};

/** Longer than most weight updates, shorter than what SDKs wait for an answer without a stream (600 s). */
const defaultPauseWaitSeconds = 300;
/** A restart of an engine takes seconds at the least; asking sooner finds it down again. */
const restMs = 1_000;

export class EnginePool implements AsyncDisposable {
  readonly slots: EngineSlot[] = [];
  readonly pauseWaitSeconds: number;
  readonly #routes: readonly EngineRoute[];
  readonly #onError: EnginePoolOptions["onError"];
  readonly #closing = new AbortController();
  /** A gate, a policy or the list of engines changed. */
  #changed = Promise.withResolvers<void>();
  /** A call left an engine. Apart, so that thousands of calls at a gate do not wake for each that drains. */
  #left = Promise.withResolvers<void>();
  #lastFacts: EngineFacts | null = null;
  readonly #line: WaitingLine;
  #leases = 0;

  constructor(options: EnginePoolOptions) {
    this.#routes = options.routes ?? [];
    this.pauseWaitSeconds = options.pauseWaitSeconds ?? defaultPauseWaitSeconds;
    this.#line = new WaitingLine(this.pauseWaitSeconds);
    this.#onError = options.onError;
  }

  /** Calls that wait at a shut gate. */
  get waiting(): number {
    return this.#line.atGates;
  }

  /** The policy's first engine. Throws `engine_unreachable` without any engine. */
  get first(): EngineSlot {
    const [first] = preferPolicy(this.slots);
    if (first) return first;
    throw new AlidadeError("engine_unreachable", "the proxy has no engine: add one with POST /engines");
  }

  /** What the first engine can do; of a pool that has lost its last one, what that one could. */
  get facts(): EngineFacts {
    return (this.slots.length === 0 && this.#lastFacts) || this.first.facts;
  }

  /** Names of the models that are served now. */
  get models(): string[] {
    return [...new Set(this.slots.filter((slot) => !slot.isDraining).flatMap((slot) => slot.facts.models))];
  }

  /** Names of the models that this session's client may ask for: a sandboxed one has its own alone. */
  modelsFor(session: Placed): string[] {
    const own = session.spec.sandboxed ? ownModel(this.slots, session) : null;
    return own === null ? this.models : [own];
  }

  /** Throws `request_invalid` when no engine serves the session's model. */
  assertServes(spec: Parameters<typeof assertModelOf>[0]): void {
    assertModelOf(spec, this.slots, this.#routes);
  }

  /** Before a rollout is prepared. Throws `policy_gone` where no engine has the policy that its session is pinned to. */
  assertPolicyOf({ pinned_policy: pinned = null, model = null }: Partial<SessionOptions>): void {
    if (pinned === null) return;
    const spec = { purpose: "eval", policy_mode: "pin", pinned_policy: pinned, sandboxed: true, model } as const;
    const session = { spec, placement: { engineNames: [], pinned, began: null } };
    this.#candidates({ session, model: model ?? this.facts.models[0] ?? "", agent: "main", request_class: "main" });
  }

  /** Throws `not_found` with the names that there are. */
  named(name: string): EngineSlot {
    const slot = this.slots.find((each) => each.name === name);
    if (slot) return slot;
    const names = this.slots.map((each) => each.name).join(", ") || "none";
    throw new AlidadeError("not_found", `no engine is named "${name}"; there are: ${names}`, { param: "engine" });
  }

  /**
   * Probes an engine and takes it in. Throws `engine_unreachable`, `engine_without_token_ids` where it is meant for
   * training and cannot be trained on, and `request_invalid` (409) for a name that is taken, and for a policy where the
   * engine says that it serves other weights. `replace` takes the place of the engine of that name, which ends what it has
   * begun and goes.
   */
  async add(
    spec: EngineSpec,
    options: { owned?: boolean; forTraining?: boolean; replace?: boolean; signal?: AbortSignal | undefined } = {},
  ): Promise<EngineSlot> {
    if (!options.replace) this.#assertFree(spec.name);
    const facts = await probeEngine(spec.engine, options.signal);
    if (options.forTraining) assertTrainable(facts);
    assertAgree({ policy: spec.policy ?? null, engineVersion: spec.engineVersion }, [
      { name: spec.name, word: facts.weight_version ?? null },
    ]);
    // The name may have been taken meanwhile.
    if (!options.replace) this.#assertFree(spec.name);
    const old = this.slots.find((slot) => slot.name === spec.name);
    const slot = new EngineSlot(spec, facts, options.owned ?? false);
    if (old) {
      assertUnfenced(old);
      this.slots.splice(this.slots.indexOf(old), 1, slot);
      old.isDraining = true;
      void this.drained(old, this.#closing.signal).then(
        () => this.#close(old),
        () => this.#close(old),
      );
    } else this.slots.push(slot);
    this.#lastFacts = facts;
    this.changed();
    return slot;
  }

  /** No new call goes there; resolves at once with what still runs, or when nothing does within the time. */
  async drain(name: string, withinSeconds: number, signal: AbortSignal): Promise<EngineSlot> {
    const slot = this.named(name);
    slot.isDraining = true;
    this.changed();
    if (withinSeconds > 0)
      await this.drained(slot, AbortSignal.any([signal, AbortSignal.timeout(withinSeconds * 1000)])).catch(() => undefined);
    return slot;
  }

  /** Lets a drained engine take calls again. */
  undrain(name: string): EngineSlot {
    const slot = this.named(name);
    slot.isDraining = false;
    this.changed();
    return slot;
  }

  /**
   * Throws `request_invalid` (409) while calls run on it, unless forced: then they are answered with a retryable error.
   * Forced or not while its gate is shut: an engine that is added under its name would stand outside the fence, open.
   */
  async remove(name: string, force: boolean): Promise<void> {
    const slot = this.named(name);
    assertUnfenced(slot);
    if (slot.inFlight.size > 0 && !force)
      throw conflict(`engine "${name}" is at ${slot.inFlight.size} calls: drain it and wait, or remove it with ?force=true`);
    this.slots.splice(this.slots.indexOf(slot), 1);
    slot.isDraining = true;
    slot.cancelAll(new AlidadeError("engine_aborted", `engine "${name}" was removed while it answered`, { status: 503 }));
    this.changed();
    await this.drained(slot, AbortSignal.timeout(cancelledWithinMs)).catch(() => undefined);
    await this.#close(slot);
  }

  /** The engine that this call would go to now, whether its gate is open or not. Throws as `candidates`. */
  choose(wish: Wish): EngineSlot {
    return pick(this.#candidates(wish), wish, new Set());
  }

  /** The model that this engine serves the call with. */
  routedModel(slot: EngineSlot, wish: Wish): RoutedModel {
    return routedModelOf(slot, this.slots, this.#routes, wish);
  }

  /** Whether another engine than those that have just failed could take the call at once. */
  offersAnother(wish: Wish, avoid: ReadonlySet<EngineSlot>): boolean {
    try {
      return this.#candidates(wish).some((slot) => !avoid.has(slot) && slot.hasRoom && !slot.breaker.isOpen);
    } catch {
      // Without any engine, `enter` throws.
      return false;
    }
  }

  /** Waits where the engines are paused or full, and takes a place at one. Throws as `choose`, and `engine_paused`. */
  async enter(wish: Wish, options: EnterOptions): Promise<EngineLease> {
    const { signal, onPause, avoid } = options;
    const choose = (): EngineSlot => this.#chooseOpen(wish, avoid);
    const mayTake = (slot: EngineSlot): boolean => this.#isFor(slot, wish);
    const take = (slot: EngineSlot): EngineLease => this.#lease(slot, wish, options);
    const arrived = Date.now();
    for (;;) {
      signal.throwIfAborted();
      const slot = choose();
      if (slot.hasRoom) return take(slot);
      const lease = await this.#line.wait({ signal, onPause, choose, mayTake, take }, slot, arrived);
      if (lease !== null) return lease;
    }
  }

  /** Gives the place back, with what became of the try: null when the engine did what it should. */
  leave(lease: EngineLease, failure: AlidadeError | null): void {
    const { slot } = lease;
    slot.inFlight.delete(lease);
    lease.thaw(Date.now());
    if (failure === null || meansAlive(failure)) this.#isWell(slot);
    else if (meansUnwell(failure) && slot.breaker.failed()) void this.#judge(lease, failure).catch(() => undefined);
    this.#freePlace(slot);
  }

  /**
   * The engine's state, by a probe of our own once its gate is open. A gate that stays closed for as long as a call would
   * wait means busy; a removed engine fails. Throws the signal's reason.
   */
  async stateOf(slot: EngineSlot, model: string, signal: AbortSignal): Promise<EngineState> {
    using patience = new Deadline(this.pauseWaitSeconds * 1000);
    const limit = AbortSignal.any([signal, patience.signal]);
    for (;;) {
      while (slot.gate !== null && !limit.aborted) await untilAborted(this.#changed.promise, limit).catch(() => undefined);
      signal.throwIfAborted();
      if (slot.gate !== null) return "busy";
      if (!this.slots.includes(slot)) return "fails";
      const fenced = new AbortController();
      // A fence waits for it, or cancels it, as for any call.
      const running: RunningCall = { cancel: (error) => fenced.abort(error), policyChanged() {}, freeze() {}, thaw() {} };
      slot.inFlight.add(running);
      try {
        return await askCanary(slot.engine, model, AbortSignal.any([signal, fenced.signal]));
      } catch (error) {
        if (!fenced.signal.aborted) throw error;
      } finally {
        slot.inFlight.delete(running);
        this.#freePlace(slot);
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
    const open = this.slots.filter((slot) => !slot.isDraining);
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
   * Asks each engine again what it calls its weights. Where that is another word than before, and not the policy's, the
   * engine was restarted or loaded other weights, and they were not named here: from now on its policy is unknown (null).
   */
  async recheck(signal: AbortSignal): Promise<void> {
    await Promise.all(this.slots.map((slot) => this.#recheck(slot, signal)));
  }

  /** Resolves when nothing runs on the engine. Rejects with the signal's reason. */
  async drained(slot: EngineSlot, signal: AbortSignal): Promise<void> {
    while (slot.inFlight.size > 0) await untilAborted(this.#left.promise, signal);
  }

  /** Wakes the calls that wait for a gate, a place or an engine. */
  changed(): void {
    this.#line.lookAgain(this.slots);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new AlidadeError("cancelled", "the proxy is stopping"));
    this.changed();
    await Promise.all(this.slots.map((slot) => this.#close(slot)));
  }

  #candidates(wish: Wish): EngineSlot[] {
    return candidates(this.slots, this.#routes, wish);
  }

  #isFor(slot: EngineSlot, wish: Wish): boolean {
    try {
      return this.#candidates(wish).includes(slot);
    } catch {
      return false;
    }
  }

  #chooseOpen(wish: Wish, avoid: ReadonlySet<EngineSlot>): EngineSlot {
    const all = this.#candidates(wish);
    const open = all.filter((slot) => slot.gate === null);
    return pick(open.length > 0 ? open : all, wish, avoid);
  }

  #lease(slot: EngineSlot, wish: Wish, { onPlaced, onPause, onCancel, sampled }: EnterOptions): EngineLease {
    const lease = new EngineLease({
      ...this.routedModel(slot, wish),
      slot,
      isOfPolicy: isOfPolicy(slot, this.slots, this.#routes, wish),
      isPinned: isPinned(wish.session.spec),
      onPause,
      onCancel,
      sampled,
    });
    slot.inFlight.add(lease);
    slot.lastLease = ++this.#leases;
    onPlaced(lease);
    return lease;
  }

  /** Calls in line at another engine may go there again. */
  #isWell({ breaker }: EngineSlot): void {
    const wasOpen = breaker.isOpen;
    breaker.close();
    if (wasOpen) this.changed();
  }

  #freePlace(slot: EngineSlot): void {
    if (slot.places !== null) this.#line.fill(slot);
    this.#left.resolve();
    this.#left = Promise.withResolvers();
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
    const signal = this.#closing.signal;
    const isWell = async (): Promise<boolean> => (await this.stateOf(slot, model, signal)) !== "fails";
    if (!slot.breaker.checked(await isWell())) return;
    this.changed();
    this.#onError(failure, `engine "${slot.name}" is left alone until it answers again`);
    while (slot.breaker.isOpen && this.slots.includes(slot)) {
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
    if (policy === null || before === null || checkPolicy(slot, word) === "agrees") return;
    slot.nameWeights({ policy: null, word });
    this.changed();
    const what = `it said "${before}" and says "${word}" now, and policy "${policy.version}" was not named anew`;
    const todo = "name its weights with PUT /policy, or start again once they are loaded";
    this.#onError(conflict(`${what}: its calls have no policy from here on; ${todo}`), `engine "${slot.name}" serves other weights`);
  }

  async #close(slot: EngineSlot): Promise<void> {
    if (slot.isOwned) await slot.engine.close();
  }

  #assertFree(name: string): void {
    if (this.slots.some((slot) => slot.name === name))
      throw conflict(`an engine is named "${name}" already: remove it first, or add this one with "replace": true`);
  }
}

/** An engine gives up a cancelled request in well under a second; this only bounds one that hangs. */
const cancelledWithinMs = 10_000;

/** The engine refused this request and is well. A budget that was spent meanwhile says nothing of it. */
function meansAlive(failure: AlidadeError): boolean {
  if (failure.code === "budget_spent") return false;
  return failure.owner !== "infrastructure" || failure.status === 429;
}

/** No connection, a 5xx, or a stream that broke off; not what we cancelled ourselves. */
function meansUnwell(failure: AlidadeError): boolean {
  return failure.code === "engine_unreachable" || failure.code === "engine_error";
}

function assertUnfenced({ name, gate }: EngineSlot): void {
  if (gate) throw conflict(`engine "${name}" is paused for a weight update: resume fence ${gate.fence} first`);
}
