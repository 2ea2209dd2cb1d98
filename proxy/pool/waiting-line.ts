/**
 * Calls that wait for a place at an engine: its gate is shut, or it is at as many calls as it takes. Each waits at one engine,
 * in the order of their arrival, and is handed the place of a call that leaves. An engine at which none waits takes the first
 * call of another's that it may take. The wait is charged to no budget of the session.
 */
import { AlidadeError } from "../../base/errors.ts";
import { Deadline } from "../../base/host/deadline.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import type { EngineLease } from "./engine-lease.ts";
import type { EngineSlot } from "./engine-slot.ts";

export type WaitingCall = {
  signal: AbortSignal;
  /** The wait begins; call what it returns when it is over. */
  onPause: (from: number) => (to: number) => void;
  /** The engine that it would go to now. Throws where there is none any more. */
  choose: () => EngineSlot;
  /** Whether the engine is one of those for it, busy or not. A no holds until the engines change. */
  mayTake: (slot: EngineSlot) => boolean;
  /** Takes the place. */
  take: (slot: EngineSlot) => EngineLease;
};

type PlaceInLine = {
  call: WaitingCall;
  slot: EngineSlot;
  arrived: number;
  /** Engines that are none for it. A place at one of them is not offered to it again. */
  notFor: Set<EngineSlot>;
  /** null: the engines have changed, so it looks again; undefined: it waits. */
  given: EngineLease | null | undefined;
  wake: () => void;
};

export class WaitingLine {
  /** Those that were given nothing yet, in the order of their arrival. */
  readonly #places = new Set<PlaceInLine>();
  /** The same by engine, so that a place is filled without a look at the lines of all others. */
  readonly #lines = new Map<EngineSlot, Set<PlaceInLine>>();
  readonly #patienceMs: number;

  /** `patienceSeconds`: so long a call waits where nothing moves, because the gate is shut or this process has no place there at all. */
  constructor(patienceSeconds: number) {
    this.#patienceMs = patienceSeconds * 1000;
  }

  /** Calls that wait at a shut gate. */
  get atGates(): number {
    return [...this.#places].filter(({ slot }) => slot.gate !== null).length;
  }

  /** The place that it was given, or null where the engines have changed. Throws `engine_paused`, and the signal's reason. */
  async wait(call: WaitingCall, slot: EngineSlot, arrived: number): Promise<EngineLease | null> {
    const { promise, resolve: wake } = Promise.withResolvers<void>();
    const place: PlaceInLine = { call, slot, arrived, notFor: new Set(), given: undefined, wake };
    const goOn = call.onPause(Date.now());
    this.#enter(place);
    try {
      while (place.given === undefined) await this.#untilWoken(place, promise);
      return place.given;
    } finally {
      this.#leave(place);
      goOn(Date.now());
    }
  }

  /** Hands out the places that this engine has free. */
  fill(slot: EngineSlot): void {
    while (slot.hasRoom) {
      const next = this.#nextFor(slot);
      if (next === undefined) return;
      this.#give(next, next.call.take(slot));
    }
  }

  /** After a change of the engines each call looks anew where it goes. */
  lookAgain(slots: readonly EngineSlot[]): void {
    for (const slot of slots) this.fill(slot);
    for (const place of this.#places) this.#give(place, null);
  }

  #nextFor(slot: EngineSlot): PlaceInLine | undefined {
    return firstFor(slot, this.#lines.get(slot) ?? []) ?? firstFor(slot, this.#places);
  }

  #enter(place: PlaceInLine): void {
    const line = this.#lines.get(place.slot) ?? new Set();
    this.#lines.set(place.slot, line.add(place));
    this.#places.add(place);
    place.slot.waiting += 1;
  }

  #leave(place: PlaceInLine): void {
    if (!this.#places.delete(place)) return;
    const line = this.#lines.get(place.slot);
    line?.delete(place);
    if (line?.size === 0) this.#lines.delete(place.slot);
    place.slot.waiting -= 1;
  }

  /** Out of the line at once: it wakes a moment later, and until then the next place is another call's. */
  #give(place: PlaceInLine, lease: EngineLease | null): void {
    this.#leave(place);
    place.given = lease;
    place.wake();
  }

  /** A limit counts from the moment at which nothing moved any more; a line that moves has none. */
  async #untilWoken(place: PlaceInLine, woken: Promise<void>): Promise<void> {
    const { signal } = place.call;
    using patience = new Deadline(this.#leftOf(place) ?? this.#patienceMs);
    const limit = AbortSignal.any([signal, patience.signal]);
    await untilAborted(woken, limit).catch(() => undefined);
    // A place that was given meanwhile must be taken, so that it is given back.
    if (place.given !== undefined) return;
    signal.throwIfAborted();
    if (limit.aborted && this.#leftOf(place) === 0) throw this.#paused(place.slot);
  }

  /** Milliseconds; null: the line moves. */
  #leftOf({ slot, arrived }: PlaceInLine): number | null {
    if (slot.stuckSince === null) return null;
    return Math.max(0, Math.max(arrived, slot.stuckSince) + this.#patienceMs - Date.now());
  }

  #paused({ name, gate, callsAtOnce }: EngineSlot): AlidadeError {
    const patience = `for more than ${this.#patienceMs / 1000} s: try again`;
    if (gate !== null) return new AlidadeError("engine_paused", `the engines have been paused for ${gate.why} ${patience}`);
    const others = `the other nodes have had all of the ${callsAtOnce} calls that engine "${name}" takes at once`;
    return new AlidadeError("engine_paused", `${others} ${patience}`);
  }
}

function firstFor(slot: EngineSlot, places: Iterable<PlaceInLine>): PlaceInLine | undefined {
  for (const place of places) if (!place.call.signal.aborted && mayGo(place, slot)) return place;
  return undefined;
}

function mayGo({ call, notFor }: PlaceInLine, slot: EngineSlot): boolean {
  if (notFor.has(slot)) return false;
  if (!call.mayTake(slot)) {
    notFor.add(slot);
    return false;
  }
  try {
    return call.choose() === slot;
  } catch {
    return false;
  }
}
