/** How long simulated rollouts take, and the soonest that a list of them can be done. */
import { createHash } from "node:crypto";

/** Log-normal, as agents' runs are: most are short and a few take many times the mean. */
export type Durations = { meanSeconds: number; sigma: number; mostSeconds: number };

/** Seconds; the same for each attempt at a rollout and in each process. */
export function durationOf(rollout: string, { meanSeconds, sigma, mostSeconds }: Durations): number {
  const bytes = createHash("sha256").update(rollout).digest();
  const [one, other] = [(bytes.readUInt32LE(0) + 1) / 2 ** 32, bytes.readUInt32LE(4) / 2 ** 32];
  const normal = Math.sqrt(-2 * Math.log(one)) * Math.cos(2 * Math.PI * other);
  return Math.min(mostSeconds, meanSeconds * Math.exp(sigma * normal - sigma ** 2 / 2));
}

/** When each rollout ends if each slot takes the next of the list as soon as it is free; in ascending order. */
export function listSchedule(seconds: readonly number[], slots: number): number[] {
  const free = new Float64Array(slots);
  const ends = seconds.map((duration) => {
    const end = free[0]! + duration;
    sink(free, end);
    return end;
  });
  return ends.toSorted((one, other) => one - other);
}

/** Puts `end` in the place of the soonest one of a binary heap. */
function sink(heap: Float64Array, end: number): void {
  let at = 0;
  for (;;) {
    const left = 2 * at + 1;
    if (left >= heap.length) break;
    const least = left + 1 < heap.length && heap[left + 1]! < heap[left]! ? left + 1 : left;
    if (heap[least]! >= end) break;
    heap[at] = heap[least]!;
    at = least;
  }
  heap[at] = end;
}

/** When this share of them is done. */
export function doneAt(ends: readonly number[], share: number): number {
  return ends[Math.ceil(ends.length * share) - 1]!;
}
