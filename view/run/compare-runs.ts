/** Holds two runs against each other by task. The difference is paired: a task counts if both runs measured it. */
import { type Interval, meanOf, studentInterval } from "../../base/statistics/intervals.ts";
import type { Entry } from "./entries.ts";

export type TaskSide = { rollouts: number; measured: number; mean: number | null };
export type TaskPair = {
  task_id: string;
  one: TaskSide;
  other: TaskSide;
  /** Mean of the other run minus mean of this one; null: one of them measured nothing. */
  difference: number | null;
};

export type RunComparison = {
  /** The largest difference first, then the tasks without one. */
  tasks: TaskPair[];
  /** Tasks that both measured. */
  paired: number;
  /** Mean of their differences, each task by the same weight; null where there is no such task. */
  difference: number | null;
  /** 95 %, by Student's t over the tasks; null: there are fewer than two, or all differ by the same. */
  interval: Interval | null;
  /** Over the paired tasks, each by the same weight. */
  means: { one: number; other: number } | null;
};

export function compareRuns(one: readonly Entry[], other: readonly Entry[]): RunComparison {
  const [ours, theirs] = [sidesOf(one), sidesOf(other)];
  const none: TaskSide = { rollouts: 0, measured: 0, mean: null };
  const tasks = [...new Set([...ours.keys(), ...theirs.keys()])].map((task_id): TaskPair => {
    const [here, there] = [ours.get(task_id) ?? none, theirs.get(task_id) ?? none];
    const difference = here.mean === null || there.mean === null ? null : there.mean - here.mean;
    return { task_id, one: here, other: there, difference };
  });
  const paired = tasks.filter(({ difference }) => difference !== null);
  const differences = paired.map(({ difference }) => difference ?? 0);
  const meanBy = (side: "one" | "other") => meanOf(paired.map((task) => task[side].mean ?? 0));
  return {
    tasks: tasks.sort((a, b) => sizeOf(b) - sizeOf(a)),
    paired: paired.length,
    difference: paired.length === 0 ? null : meanOf(differences),
    interval: differences.length < 2 ? null : studentInterval(differences),
    means: paired.length === 0 ? null : { one: meanBy("one"), other: meanBy("other") },
  };
}

const sizeOf = ({ difference }: TaskPair): number => (difference === null ? -1 : Math.abs(difference));

/** Rollouts of no task cannot be paired. */
function sidesOf(entries: readonly Entry[]): Map<string, TaskSide> {
  const sides = new Map<string, TaskSide>();
  for (const [task_id, all] of Map.groupBy(entries, (entry) => entry.task_id)) {
    if (task_id === null) continue;
    const rewards = all.flatMap(({ reward }) => reward ?? []);
    sides.set(task_id, { rollouts: all.length, measured: rewards.length, mean: rewards.length === 0 ? null : meanOf(rewards) });
  }
  return sides;
}
