/** How long something took, counted by steps, as Prometheus reads it. */
import type { MetricFamily, MetricSample } from "./prometheus-text.ts";

/** Upper bounds in seconds: from a fast first token to an agent that works for two hours, each about 2.5 times the one before. */
export const secondsUpTo = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60, 150, 300, 900, 1800, 3600, 7200] as const;

/** A monitor keeps twenty series for each. Names of engines come from the operator, who may change them at run time. */
const mostSeries = 50;

type Series = { labels: Record<string, string>; counts: number[]; sum: number };

export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #series = new Map<string, Series>();

  /** `name`: with its unit, `_seconds`. */
  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  /** A time below 0, of two clocks that differ, counts as 0. Series beyond the bound are not begun. */
  observe(seconds: number, labels: Record<string, string> = {}): void {
    if (!Number.isFinite(seconds)) return;
    const key = JSON.stringify(labels);
    const series = this.#series.get(key) ?? { labels, counts: Array<number>(secondsUpTo.length + 1).fill(0), sum: 0 };
    if (this.#series.size >= mostSeries && !this.#series.has(key)) return;
    this.#series.set(key, series);
    const value = Math.max(0, seconds);
    const found = secondsUpTo.findIndex((bound) => value <= bound);
    const at = found === -1 ? secondsUpTo.length : found;
    series.counts[at] = (series.counts[at] ?? 0) + 1;
    series.sum += value;
  }

  family(): MetricFamily {
    return { name: this.#name, type: "histogram", help: this.#help, samples: [...this.#series.values()].flatMap(samplesOf) };
  }
}

/** Each bucket counts all up to its bound. */
function samplesOf({ labels, counts, sum }: Series): MetricSample[] {
  let total = 0;
  const buckets = counts.map((count, at): MetricSample => {
    total += count;
    return { part: "_bucket", labels: { ...labels, le: String(secondsUpTo[at] ?? "+Inf") }, value: total };
  });
  return [...buckets, { part: "_sum", labels, value: sum }, { part: "_count", labels, value: total }];
}
