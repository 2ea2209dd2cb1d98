/** Chooses tasks by how often they were passed before. */
import { z } from "zod";

/** Rollouts of one task with a reward, and how many of them passed. */
export type PassCount = { measured: number; passed: number };

/** By `task_id`. A task without a measured reward has no rate, which is not a rate of 0. */
export type PassCounts = ReadonlyMap<string, PassCount>;

export const PassRange = z
  .string()
  .refine((text) => toRange(text) !== null, "give two numbers from 0 to 1, the lesser one first, as in 0.1..0.9");

export type PassRateChoice = { pass_rate: string; with_unmeasured: boolean };

/** `outside`: how many have a rate outside the range. `unmeasured`: those without a rate; `taken` holds them too if the choice says so. */
export type ByPassRate<T> = { taken: T[]; outside: number; unmeasured: T[] };

/** Takes those with a rate in the range. Both ends belong to it. */
export function takeByPassRate<T>(
  all: readonly T[],
  idOf: (one: T) => string,
  { pass_rate, with_unmeasured }: PassRateChoice,
  counts: PassCounts,
): ByPassRate<T> {
  const range = toRange(pass_rate) ?? { low: 0, high: 1 };
  const rated = all.map((one) => ({ one, rate: rateOf(counts.get(idOf(one))) }));
  const isIn = (rate: number | null): boolean => (rate === null ? with_unmeasured : rate >= range.low && rate <= range.high);
  return {
    taken: rated.filter(({ rate }) => isIn(rate)).map(({ one }) => one),
    outside: rated.filter(({ rate }) => rate !== null && !isIn(rate)).length,
    unmeasured: rated.filter(({ rate }) => rate === null).map(({ one }) => one),
  };
}

/** Returns null if nothing was measured. */
export function rateOf(count: PassCount | undefined): number | null {
  return count === undefined || count.measured === 0 ? null : count.passed / count.measured;
}

/** Adds up what several runs measured. */
export function sumOfCounts(all: readonly PassCounts[]): PassCounts {
  const sum = new Map<string, PassCount>();
  for (const counts of all)
    for (const [task, { measured, passed }] of counts) {
      const known = sum.get(task) ?? { measured: 0, passed: 0 };
      sum.set(task, { measured: known.measured + measured, passed: known.passed + passed });
    }
  return sum;
}

function toRange(text: string): { low: number; high: number } | null {
  const [, low = "", high = ""] = /^(\d(?:\.\d{1,15})?)\.\.(\d(?:\.\d{1,15})?)$/.exec(text) ?? [];
  const range = { low: Number(low), high: Number(high) };
  return low !== "" && range.low <= range.high && range.high <= 1 ? range : null;
}

/** At most so many names are printed. */
const namesTold = 5;

/** Returns one sentence on what was taken. `earlier`: the names of the runs. */
export function toldChoice<T>(found: ByPassRate<T>, idOf: (one: T) => string, choice: PassRateChoice, earlier: readonly string[]): string {
  const { taken, outside, unmeasured } = found;
  const all = outside + unmeasured.length + taken.length - (choice.with_unmeasured ? unmeasured.length : 0);
  const range = `pass rate ${choice.pass_rate} of ${earlier.join(", ")}: ${taken.length} of ${all} tasks are taken, ${outside} lie outside`;
  if (unmeasured.length === 0) return range;
  const names = unmeasured.slice(0, namesTold).map(idOf);
  const more = unmeasured.length > names.length ? ` and ${unmeasured.length - names.length} more` : "";
  const what = choice.with_unmeasured ? "are taken" : "are left out; --with-unmeasured takes them";
  return `${range}, ${unmeasured.length} have no measured reward there and ${what} (${names.join(", ")}${more})`;
}
