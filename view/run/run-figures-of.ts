/** Computes the figures of screen 4 for a run, or for the rollouts that a filter leaves. */
import { type Statistics, statisticsOf } from "../../base/statistics/statistics.ts";
import { type PhaseSeconds, phaseNames } from "../../rollouts/records/index.ts";
import { type Entry, nullReason } from "./entries.ts";
import { newestStep } from "./filters.ts";

/** The same count as `alidade stats` by default. */
export const passReward = 1;

export type StepRow = { step: number | null; statistics: Statistics };
export type TaskRate = { task_id: string | null; statistics: Statistics };

export type RunOverview = {
  all: Statistics;
  steps: StepRow[];
  tasks: TaskRate[];
  ends: Record<string, number>;
  nulls: Record<string, number>;
  /** null if no rollout has a count. */
  turns: Spread | null;
  tokens: Spread | null;
  /** Seconds of each phase, over all rollouts. */
  phases: Record<keyof PhaseSeconds, number>;
};

/** `bounds[at]`: the upper bound of `counts[at]`. */
export type Spread = { median: number; most: number; bounds: number[]; counts: number[] };

export function runOverview(entries: readonly Entry[]): RunOverview {
  const statistics = (of: readonly Entry[]) => statisticsOf(of, { pass: passReward, ks: null });
  const steps = [...Map.groupBy(entries, newestStep)].map(([step, all]) => ({ step, statistics: statistics(all) }));
  const tasks = [...Map.groupBy(entries, ({ task_id }) => task_id)].map(([task_id, all]) => ({ task_id, statistics: statistics(all) }));
  return {
    all: statistics(entries),
    steps: steps.sort((a, b) => (a.step ?? -1) - (b.step ?? -1)),
    tasks: tasks.sort((a, b) => (a.statistics.mean_reward ?? 2) - (b.statistics.mean_reward ?? 2)),
    ends: countedBy(entries, ({ end, state }) => end ?? state),
    nulls: countedBy(
      entries.filter(({ reward }) => reward === null),
      nullReason,
    ),
    turns: spreadOf(entries.flatMap(({ turns }) => turns ?? [])),
    tokens: spreadOf(entries.flatMap(({ sampled_tokens }) => sampled_tokens ?? [])),
    phases: phasesOf(entries),
  };
}

function countedBy(entries: readonly Entry[], keyOf: (entry: Entry) => string): Record<string, number> {
  const counts = new Map<string, number>();
  for (const entry of entries) counts.set(keyOf(entry), (counts.get(keyOf(entry)) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
}

const steps = 12;

/** Makes twelve bars of equal width. */
function spreadOf(values: number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const most = sorted.at(-1) ?? 0;
  const width = Math.max(1, Math.ceil((most + 1) / steps));
  const counts = new Array<number>(Math.floor(most / width) + 1).fill(0);
  for (const value of sorted) counts[Math.floor(value / width)] = (counts[Math.floor(value / width)] ?? 0) + 1;
  return { median: sorted[Math.floor(sorted.length / 2)] ?? 0, most, bounds: counts.map((_, at) => (at + 1) * width), counts };
}

function phasesOf(entries: readonly Entry[]): RunOverview["phases"] {
  const sum = { queue: 0, init: 0, run: 0, grade: 0, teach: 0 };
  for (const { phases } of entries) {
    if (phases === null) continue;
    for (const name of phaseNames) sum[name] += phases[name] ?? 0;
  }
  return sum;
}
