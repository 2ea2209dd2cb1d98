/** 95 % intervals. null: too little is known for one. */

export type Interval = { low: number; high: number };

/** The normal distribution's two-sided 95 % quantile. */
const z = 1.959964;

/**
 * For the mean of independent values; null for fewer than two, and where equal ones tell no spread. Wilson's interval where
 * each value is 0 or 1, else Student's t. Values that all lie in 0 to 1, the usual range of rewards, get an interval in it.
 */
export function meanInterval(values: readonly number[]): Interval | null {
  if (values.length < 2) return null;
  if (values.every((value) => value === 0 || value === 1)) return shareInterval(meanOf(values), values.length);
  const interval = studentInterval(values);
  const isUsual = values.every((value) => value >= 0 && value <= 1);
  return interval && isUsual ? { low: Math.max(0, interval.low), high: Math.min(1, interval.high) } : interval;
}

/** By Student's t, for values of any range; null where all are equal. */
export function studentInterval(values: readonly number[]): Interval | null {
  const mean = meanOf(values);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  if (variance === 0) return null;
  const half = studentT(values.length - 1) * Math.sqrt(variance / values.length);
  return { low: mean - half, high: mean + half };
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The two-sided 95 % quantile, within 1 %: a table, then the expansion by 1/df (Abramowitz and Stegun 26.7.5). */
function studentT(df: number): number {
  const known = [12.706, 4.303, 3.182, 2.776][df - 1];
  return known ?? z + (z ** 3 + z) / (4 * df) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * df ** 2);
}

/**
 * Wilson's score interval of a share `p` of `n` (0 to 1). For the mean of n values between 0 and 1 it is never too narrow, for
 * their variance is at most p (1 - p); and it keeps a width where all values are 0 or 1.
 */
export function shareInterval(p: number, n: number): Interval {
  const centre = (p + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z * Math.sqrt((p * (1 - p)) / n + z ** 2 / (4 * n ** 2))) / (1 + z ** 2 / n);
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}
