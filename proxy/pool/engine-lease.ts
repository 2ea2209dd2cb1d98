/** A call's place at an engine, from the moment it is let through the gate until its try is over. */

import { AlidadeError } from "../../base/errors.ts";
import { nameOfPolicy, type Policy, samePolicy } from "../../base/schema/policy.ts";
import type { PolicyCheck } from "../../base/schema/session-log.ts";
import type { Engine, EngineFacts } from "../../engines/index.ts";
import type { EngineSlot, Interruption, Otherwise, RunningCall } from "./engine-slot.ts";
import { checkPolicy } from "./engine-word.ts";

/** A span of time that no budget is charged with; `to` is null while it lasts. */
export type OpenPause = { from: number; to: number | null };

/** What happens to a call at the engines, told at once to the call. */
export type LeaseEvents = {
  /** It waits at a shut gate, or stands still at its engine, from now on: no budget is charged with that. Call what it returns when it goes on. */
  onPause: (from: number) => (to: number) => void;
  /** It is asked to end: its engine's weights are changed, or the engine is taken away. */
  onCancel: (error: AlidadeError) => void;
  /** It is asked to leave the engine for new weights, and to come back. */
  onInterrupt: (otherwise: Otherwise) => Interruption;
  /** How many sampled ids have come so far. */
  sampled: () => number;
};

export class EngineLease implements RunningCall {
  readonly slot: EngineSlot;
  /** The engine's own name of the model. */
  readonly model: string;
  /** It is sampled by the session's own model: else nothing of it is trained. */
  readonly isOfPolicy: boolean;
  /** The policy as it is let through. */
  readonly policy: Policy | null;
  /** Whether the engine says the same; null where there is no policy. */
  readonly policyCheck: PolicyCheck | null;
  readonly cacheSalt: string;
  /** A policy that the route names, which outlives the engine's own. */
  readonly #routed: Policy | null;
  /** Its session takes no token from other weights than it began with. */
  readonly isPinned: boolean;
  readonly #onCancel: LeaseEvents["onCancel"];
  readonly #onPause: LeaseEvents["onPause"];
  readonly #onInterrupt: LeaseEvents["onInterrupt"];
  readonly sampled: LeaseEvents["sampled"];
  #goOn: ((to: number) => void) | null = null;
  #hasChanged = false;
  #sampledAtFreeze = 0;
  #beforeHold = 0;

  constructor(options: { slot: EngineSlot; model: string; routed: Policy | null; isOfPolicy: boolean; isPinned: boolean } & LeaseEvents) {
    this.slot = options.slot;
    this.model = options.model;
    this.isOfPolicy = options.isOfPolicy;
    this.#routed = options.routed;
    this.isPinned = options.isPinned;
    this.#onPause = options.onPause;
    this.#onCancel = options.onCancel;
    this.#onInterrupt = options.onInterrupt;
    this.sampled = options.sampled;
    this.policy = this.policyNow;
    this.policyCheck = options.routed ? "unchecked" : this.policy && checkPolicy(this.slot, this.slot.word);
    // A route may name weights of its own: adapters that one engine serves side by side.
    this.cacheSalt = [this.slot.cacheSalt, ...(options.routed ? [nameOfPolicy(options.routed)] : [])].join(" ");
  }

  get engine(): Engine {
    return this.slot.engine;
  }

  get facts(): EngineFacts {
    return this.slot.facts;
  }

  /** The engine's policy at this moment: another one than at the start when the weights were changed under the call. */
  get policyNow(): Policy | null {
    return this.#routed ?? this.slot.policy;
  }

  cancel(error: AlidadeError): void {
    this.#onCancel(error);
  }

  interrupt(otherwise: Otherwise): Interruption {
    return this.#onInterrupt(otherwise);
  }

  /** Whether the policy changed since the call was admitted, even if it changed back. */
  get hasChangedPolicy(): boolean {
    return this.#hasChanged;
  }

  /** Ids that the policy at the start is known to have sampled, where the policy changed in a hold; else 0. */
  get sampledBeforeHold(): number {
    return this.#beforeHold;
  }

  /** A pinned session takes no token from other weights than it began with: what was frozen under it ends here. */
  policyChanged(): void {
    // What had no name may be the same weights, named now. Behind a hold they are what its trainer has loaded.
    if ((this.policy === null && this.#goOn === null) || samePolicy(this.policy, this.policyNow)) return;
    // A trainer loads weights after its hold is acknowledged. Without one they were loaded at an unknown time before.
    if (!this.#hasChanged && this.#goOn !== null) this.#beforeHold = this.#sampledAtFreeze;
    this.#hasChanged = true;
    if (!this.isPinned || this.policy === null) return;
    const change = `from policy ${nameOfPolicy(this.policy)} to ${nameOfPolicy(this.policyNow)}`;
    this.cancel(new AlidadeError("policy_gone", `the engine went ${change} under a call of a pinned session`));
  }

  /** The engine is held with this call inside; no budget counts this time. */
  freeze(now: number): void {
    if (this.#goOn !== null) return;
    this.#goOn = this.#onPause(now);
    this.#sampledAtFreeze = this.sampled();
  }

  thaw(now: number): void {
    this.#goOn?.(now);
    this.#goOn = null;
  }
}
