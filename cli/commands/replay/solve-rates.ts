/** How often a rollout is solved from each of its turns: the rewards of its forks, counted by turn. */
import { type Interval, shareInterval } from "../../../base/statistics/intervals.ts";

export type SolveRate = {
  /** The last turn that the forks share with the rollout; 0: none. */
  turn: number;
  forks: number;
  /** Those with a reward; the others are in no other number here. */
  measured: number;
  solved: number;
  /** solved / measured, and Wilson's 95 % interval; null where nothing was measured. */
  rate: number | null;
  interval: Interval | null;
};

export type ForkEnd = { turn: number; reward: number | null };

/** In the order of turns. A fork is solved with a reward of `pass` or more. */
export function solveRates(ends: readonly ForkEnd[], pass: number): SolveRate[] {
  return [...Map.groupBy(ends, ({ turn }) => turn)]
    .toSorted(([one], [other]) => one - other)
    .map(([turn, all]) => {
      const rewards = all.flatMap(({ reward }) => reward ?? []);
      const solved = rewards.filter((reward) => reward >= pass).length;
      const rate = rewards.length === 0 ? null : solved / rewards.length;
      const interval = rate === null ? null : shareInterval(rate, rewards.length);
      return { turn, forks: all.length, measured: rewards.length, solved, rate, interval };
    });
}

/** Characters of a line of the chart. A tenth is then two of them. */
const chartWidth = 21;

/** One line of a chart: `·` the scale from 0 to 1, `─` the interval, `●` the rate. */
export function chartLine({ rate, interval }: Pick<SolveRate, "rate" | "interval">): string {
  const at = (share: number): number => Math.round(share * (chartWidth - 1));
  return Array.from({ length: chartWidth }, (_, place) => {
    if (rate === null || interval === null) return "·";
    if (place === at(rate)) return "●";
    return place >= at(interval.low) && place <= at(interval.high) ? "─" : "·";
  }).join("");
}
