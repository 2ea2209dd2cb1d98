/** pass@k: the chance that at least one of k rollouts of a task passes. */
import { type Interval, meanOf, shareInterval } from "./intervals.ts";

/** Rollouts of a task that were measured, and those that passed. */
export type Passes = { n: number; passed: number };

export type PassAtK = { k: number; value: number; interval: Interval };

/**
 * The unbiased estimator for one task, 1 - C(n - passed, k) / C(n, k) (Chen et al. 2021), as a product that overflows
 * nowhere; null where there are fewer than k rollouts.
 */
export function passAtK({ n, passed }: Passes, k: number): number | null {
  if (n < k) return null;
  let allFail = 1;
  for (let at = 0; at < k; at++) allFail *= Math.max(0, n - passed - at) / (n - at);
  return 1 - allFail;
}

/**
 * The mean over tasks, and its interval: over other tasks of the kind where there are two or more, else over other
 * rollouts of the one. null where a task has fewer than k rollouts, for the mean of the others is another quantity.
 */
export function meanPassAtK(tasks: readonly Passes[], k: number): PassAtK | null {
  const values = tasks.map((task) => passAtK(task, k)).filter((value) => value !== null);
  const [only] = tasks;
  if (only === undefined || values.length < tasks.length) return null;
  const value = meanOf(values);
  if (tasks.length > 1) return { k, value, interval: shareInterval(value, tasks.length) };
  const { low, high } = shareInterval(only.passed / only.n, only.n);
  return { k, value, interval: { low: 1 - (1 - low) ** k, high: 1 - (1 - high) ** k } };
}
