/** One engine of the pool: its abilities, its weights, its running calls, and whether it takes more. */

import { AlidadeError } from "../../base/errors.ts";
import { SharedWork } from "../../base/host/shared-work.ts";
import { toMatch } from "../../base/schema/complaints/to-match.ts";
import { newId } from "../../base/schema/ids.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { Purpose } from "../../base/schema/session-spec.ts";
import type { Engine, EngineFacts } from "../../engines/index.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { checkPolicy, type NamedWeights } from "./engine-word.ts";
import { ModelListing } from "./model-listing.ts";

/** An engine as it is handed to the proxy. */
export type EngineSpec = {
  /** Unique among the engines of a proxy; records name it. */
  name: string;
  engine: Engine;
  /** Globs of the model names that it is for; absent: any. */
  models?: string[] | undefined;
  policy?: Policy | null;
  /** The engine's own name of these weights, where it is another. */
  engineVersion?: string | undefined;
  /** `train` (absent): it serves the policy that sessions train. Another one: a model beside it (a judge, a teacher), which is never trained. */
  purpose?: Purpose;
  /** Calls that it takes at once, from all nodes together; more wait. null (absent): any number. */
  callsAtOnce?: number | null | undefined;
  /** Ask again where an answer was lost that may have been sampled. Absent: such a call fails. */
  resampleLost?: boolean | undefined;
};

/** Why calls wait instead of being sampled. `fence`: who shut it. `why`: `weightUpdate`, or what else, for a sentence. */
export type FenceHold = { fence: string; since: number; why: string };

export const weightUpdate = "a weight update";

/** What a call does that cannot go on from its own tokens: it ends first, or is asked anew from its prompt. */
export type Otherwise = "drain" | "again";

/** What a call does that was asked to make way for new weights. `why`: what keeps it from going on; null: it goes on. */
export type Interruption = { goes: "on"; why: null } | { goes: "again" | "drains"; why: string };

/** A call at an engine, as the engine's keeper needs it. */
export interface RunningCall {
  cancel(error: AlidadeError): void;
  /** It leaves the engine, and comes back to it when the gate is open. */
  interrupt(otherwise: Otherwise): Interruption;
  /** The engine's policy was named anew: it may be another one now. */
  policyChanged(): void;
  /** The engine holds still with this call inside. */
  freeze(now: number): void;
  thaw(now: number): void;
}

export class EngineSlot {
  readonly name: string;
  readonly engine: Engine;
  /** The facts of its probe, with the models of its latest list. */
  facts: EngineFacts;
  readonly models: string[] | null;
  readonly purpose: Purpose;
  /** Added at run time: the pool closes it. */
  readonly isOwned: boolean;
  policy: Policy | null;
  engineVersion: string | undefined;
  /** The engine's own name of its weights when it was last read; null: it reports none, or did not answer. */
  word: string | null;
  /**
   * Prefixes are shared under it alone. It is another one after every weight update, whatever the new weights are called,
   * and in every process: keys and values that other weights computed are never found, also where the engine keeps them.
   */
  cacheSalt = newId("salt");
  /** Takes no new call; what runs goes on. */
  isDraining = false;
  readonly #holds = new Map<string, FenceHold>();
  readonly breaker = new CircuitBreaker();
  /** Whether it samples: one probe for all rollouts that wait for it, which may be hundreds. */
  readonly question = new SharedWork<boolean>();
  /** Asks the engine again what it serves. */
  readonly listing = new ModelListing(() => this.#listModels());
  /** Number of the last call that went there, in the order of all calls of the pool. */
  lastLease = 0;
  readonly inFlight = new Set<RunningCall>();
  readonly callsAtOnce: number | null;
  readonly resampleLost: boolean;
  /** Calls that wait for a place at it. */
  waiting = 0;
  #places: number | null;
  #withoutPlaceSince: number | null = null;

  constructor(spec: EngineSpec, facts: EngineFacts, isOwned: boolean) {
    this.name = spec.name;
    this.engine = spec.engine;
    this.facts = facts;
    this.models = spec.models ?? null;
    this.purpose = spec.purpose ?? "train";
    this.policy = spec.policy ?? null;
    this.engineVersion = spec.engineVersion;
    this.word = facts.weight_version ?? null;
    this.isOwned = isOwned;
    this.callsAtOnce = spec.callsAtOnce ?? null;
    this.#places = this.callsAtOnce;
    this.resampleLost = spec.resampleLost ?? false;
  }

  /** Calls that this process may have at it; null: any number. */
  get places(): number | null {
    return this.#places;
  }

  /** Where nodes share the engine: what this one may use. Calls that run beyond it are not ended; the caller wakes the pool. */
  grant(places: number): void {
    this.#places = places;
    this.#withoutPlaceSince = places > 0 ? null : (this.#withoutPlaceSince ?? Date.now());
  }

  /** Whether a call may begin at it now. */
  get hasRoom(): boolean {
    return this.gate === null && (this.#places === null || this.inFlight.size < this.#places);
  }

  /** Unix milliseconds since when no call that waits here can begin; null: the line moves. */
  get stuckSince(): number | null {
    return this.gate?.since ?? this.#withoutPlaceSince;
  }

  /** Shut while anything holds it; null when calls flow. */
  get gate(): FenceHold | null {
    return this.#holds.values().next().value ?? null;
  }

  /** All that keep the gate shut, the first one first. */
  get holds(): FenceHold[] {
    return [...this.#holds.values()];
  }

  shut(hold: FenceHold): void {
    this.#holds.set(hold.fence, hold);
  }

  /** The gate opens when nothing else holds it; the caller wakes the pool. */
  open(fence: string): void {
    this.#holds.delete(fence);
  }

  takes(model: string): boolean {
    return this.models === null || this.models.some((glob) => toMatch(glob)(model));
  }

  serves(model: string): boolean {
    return this.facts.models.includes(model);
  }

  /** True if this served name is an adapter. */
  isAdapter(model: string): boolean {
    return this.facts.adapters?.includes(model) ?? false;
  }

  /** What it serves from now on; the calls on it were let through under another name, or under this one. */
  nameWeights({ policy, engineVersion, word }: NamedWeights & { word: string | null }): void {
    this.policy = policy;
    this.engineVersion = engineVersion;
    this.word = word;
    this.renewSalt();
    for (const lease of this.inFlight) lease.policyChanged();
  }

  /** From now on nothing is sampled on what was computed before. */
  renewSalt(): void {
    this.cacheSalt = newId("salt");
  }

  async #listModels(): Promise<void> {
    const listed = await this.engine.models?.(AbortSignal.timeout(listedWithinMs));
    if (listed) this.facts = { ...this.facts, models: listed.models, adapters: listed.adapters };
  }

  /** Stops what runs on it; every call is answered with this error, its partial ids kept. */
  cancelAll(error: AlidadeError): void {
    for (const lease of this.inFlight) lease.cancel(error);
  }

  describe() {
    return {
      name: this.name,
      kind: this.engine.name,
      url: this.engine.baseUrl,
      policy: this.policy,
      policy_check: this.policy && checkPolicy(this, this.word),
      models: this.models,
      purpose: this.purpose,
      in_flight: this.inFlight.size,
      waiting: this.waiting,
      calls_at_once: this.callsAtOnce,
      places: this.places,
      resample_lost: this.resampleLost,
      health: this.breaker.isOpen ? "unhealthy" : "ok",
      draining: this.isDraining,
      paused: this.gate,
      facts: this.facts,
    };
  }
}

/** Milliseconds; listing models is one small GET. */
const listedWithinMs = 10_000;

/** An engine, with its name of the model. */
export type ServedBy = { slot: EngineSlot; model: string };

/** Throws `engine_without_token_ids`, naming what would fix it. */
export function assertTrainable(facts: EngineFacts): void {
  if (facts.missing !== null)
    throw new AlidadeError("engine_without_token_ids", `nothing can be trained on what this engine returns: ${facts.missing}`);
}
