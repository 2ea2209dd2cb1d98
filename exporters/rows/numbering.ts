/** Whole numbers for formats that have no room for our ids. */
import type { Trajectory } from "../../base/schema/trajectory.ts";

/** The same number for the same id, from 0, in the order in which ids are first met. */
export function numberIds(): (id: string) => number {
  const numbers = new Map<string, number>();
  return (id) => {
    const known = numbers.get(id) ?? numbers.size;
    numbers.set(id, known);
    return known;
  };
}

/** A rollout's number in its group, which no other has: its sample index, or a free one where it has none or it is taken. */
export function numberSessions(): (group: string, trajectory: Trajectory) => number {
  const taken = new Map<string, Set<number>>();
  return (group, { group: { sample_index } }) => {
    const numbers = taken.get(group) ?? new Set();
    taken.set(group, numbers);
    let number = sample_index ?? numbers.size;
    while (numbers.has(number)) number++;
    numbers.add(number);
    return number;
  };
}
