/** Mean reward and pass@k of rollouts, each task by the same weight. */
import { type Interval, meanInterval, meanOf } from "./intervals.ts";
import { meanPassAtK, type PassAtK } from "./pass-at-k.ts";

export type Statistics = {
  tasks: number;
  rollouts: number;
  /** Those with a reward; the others are in no other number here. */
  measured: number;
  /** Each task weighs the same. null where nothing was measured. */
  mean_reward: number | null;
  mean_interval: Interval | null;
  pass_at_k: PassAtK[];
  /** Rollouts that passed, among the measured ones. */
  passed: number;
  /** The mean share that passed, each task by the same weight (pass@1); null where nothing was measured. The interval lies in 0 to 1. */
  pass_rate: number | null;
  pass_interval: Interval | null;
};

/** `reward`: null where nothing was measured. */
export type RewardOfTask = { task_id: string | null; reward: number | null };

export type StatisticsOptions = {
  /** A rollout passes with this reward or more. */
  pass: number;
  /** null: 1, 2, 4 … up to the rollouts of the task that has fewest. */
  ks: readonly number[] | null;
};

export function statisticsOf(rollouts: readonly RewardOfTask[], { pass, ks }: StatisticsOptions): Statistics {
  const measured = rollouts.flatMap(({ task_id, reward }) => (reward === null ? [] : [{ task_id, reward }]));
  const tasks = [...Map.groupBy(measured, ({ task_id }) => task_id).values()].map((all) => all.map(({ reward }) => reward));
  const means = tasks.map(meanOf);
  const passes = tasks.map((rewards) => ({ n: rewards.length, passed: rewards.filter((reward) => reward >= pass).length }));
  const rate = meanPassAtK(passes, 1);
  const fewest = passes.reduce((least, { n }) => Math.min(least, n), Number.POSITIVE_INFINITY);
  return {
    tasks: new Set(rollouts.map(({ task_id }) => task_id)).size,
    rollouts: rollouts.length,
    measured: measured.length,
    mean_reward: means.length === 0 ? null : meanOf(means),
    mean_interval: meanInterval(tasks.length === 1 ? (tasks[0] ?? []) : means),
    pass_at_k: (ks ?? powersUpTo(fewest)).flatMap((k) => meanPassAtK(passes, k) ?? []),
    passed: passes.reduce((sum, { passed }) => sum + passed, 0),
    pass_rate: rate?.value ?? null,
    pass_interval: rate?.interval ?? null,
  };
}

function powersUpTo(most: number): number[] {
  const ks: number[] = [];
  if (Number.isFinite(most)) for (let k = 1; k <= most; k *= 2) ks.push(k);
  return ks;
}
