/** Which set each free slot goes to. */

/** A set with queued rollouts. `pass`: what it has had so far, for its weight. */
export type WaitingSet = { id: string; priority: number; weight: number; pass: number; queued: number; created: number };

/** The highest priority first; among equals the set that has had least for its weight. Returns the set of each slot, in order. */
export function shareSlots(sets: readonly WaitingSet[], free: number): string[] {
  const waiting = sets.map((set) => ({ ...set }));
  const shares: string[] = [];
  while (shares.length < free) {
    const next = waiting.filter(({ queued }) => queued > 0).toSorted(byTurn)[0];
    if (next === undefined) break;
    next.queued -= 1;
    next.pass += 1 / next.weight;
    shares.push(next.id);
  }
  return shares;
}

function byTurn(one: WaitingSet, other: WaitingSet): number {
  return other.priority - one.priority || one.pass - other.pass || one.created - other.created || (one.id < other.id ? -1 : 1);
}
