/**
 * The engines behind one proxy: they come and go, calls wait at their gates and take places at them (choose-engine.ts
 * says at which), and those that fail are left alone until they answer again (engine-watch.ts). How many calls an engine
 * gets at once is limited only where its operator says so: what is too much for it, it says itself (429, 503).
 */

import { AlidadeError } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { isPinned, type SessionOptions } from "../../base/schema/session-spec.ts";
import type { EngineFacts } from "../../engines/index.ts";
import { assertModelOf } from "./assert-served.ts";
import { candidates, isServed, pick, type RoutedModel, routedModelOf } from "./choose-engine.ts";
import { conflict } from "./conflict.ts";
import { EngineLease, type LeaseEvents } from "./engine-lease.ts";
import { assertTrainable, EngineSlot, type EngineSpec } from "./engine-slot.ts";
import { EngineWatch } from "./engine-watch.ts";
import { assertAgree } from "./engine-word.ts";
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

export class EnginePool implements AsyncDisposable {
  readonly slots: EngineSlot[] = [];
  readonly pauseWaitSeconds: number;
  readonly watch: EngineWatch;
  readonly #routes: readonly EngineRoute[];
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
    this.watch = new EngineWatch({
      slots: this.slots,
      patienceSeconds: this.pauseWaitSeconds,
      closing: this.#closing.signal,
      onError: options.onError,
      changed: () => this.changed(),
      nextChange: () => this.#changed.promise,
      freePlace: (slot) => this.#freePlace(slot),
    });
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

  /** Throws `request_invalid` if no engine serves the session's model, also after the engines were asked again. */
  async assertServes(spec: Parameters<typeof assertModelOf>[0]): Promise<void> {
    try {
      assertModelOf(spec, this.slots, this.#routes);
    } catch {
      await this.#listAgain();
      assertModelOf(spec, this.slots, this.#routes);
    }
  }

  /** If no known engine serves the wished model, asks the engines what they serve now. Throws the signal's reason. */
  async lookFor(wish: Wish, signal: AbortSignal): Promise<void> {
    if (!isServed(this.slots, this.#routes, wish)) await untilAborted(this.#listAgain(), signal);
  }

  /** Before a rollout is prepared. Throws `policy_gone` where no engine has the policy that its session is pinned to. */
  assertPolicyOf({ pinned_policy: pinned = null, model = null }: Partial<SessionOptions>): void {
    if (pinned === null) return;
    const spec = { purpose: "eval", policy_mode: "pin", pinned_policy: pinned, sandboxed: true, any_model: false, model } as const;
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
    this.watch.callEnded(lease, failure);
    this.#freePlace(slot);
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

  async #listAgain(): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.listing.again()));
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

  #lease(slot: EngineSlot, wish: Wish, { onPlaced, onPause, onCancel, onInterrupt, sampled }: EnterOptions): EngineLease {
    const lease = new EngineLease({
      ...this.routedModel(slot, wish),
      slot,
      isOfPolicy: isOfPolicy(slot, this.slots, this.#routes, wish),
      isPinned: isPinned(wish.session.spec),
      onPause,
      onCancel,
      onInterrupt,
      sampled,
    });
    slot.inFlight.add(lease);
    slot.lastLease = ++this.#leases;
    onPlaced(lease);
    return lease;
  }

  #freePlace(slot: EngineSlot): void {
    if (slot.places !== null) this.#line.fill(slot);
    this.#left.resolve();
    this.#left = Promise.withResolvers();
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

function assertUnfenced({ name, gate }: EngineSlot): void {
  if (gate) throw conflict(`engine "${name}" is paused for a weight update: resume fence ${gate.fence} first`);
}
