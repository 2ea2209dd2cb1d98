/** Whole numbers for formats that have no room for our ids. Each table holds one entry a group. */
import type { Trajectory } from "../schema/trajectory.ts";

/** The same number for the same id, from 0, in the order in which ids are first met. */
export function numberIds(): (id: string) => number {
  const numbers = new Map<string, number>();
  return (id) => {
    const known = numbers.get(id) ?? numbers.size;
    numbers.set(id, known);
    return known;
  };
}

/** A rollout's number in its group: its sample index, or the next free one where nobody gave it one. */
export function numberSessions(): (group: string, trajectory: Trajectory) => number {
  const used = new Map<string, number>();
  return (group, { group: { sample_index } }) => {
    const next = used.get(group) ?? 0;
    used.set(group, Math.max(next, (sample_index ?? next) + 1));
    return sample_index ?? next;
  };
}
