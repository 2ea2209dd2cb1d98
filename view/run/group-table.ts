/** Lists tasks and their groups, most interesting first. */
import { isOpen, nullReason } from "./entries.ts";
import { writeListQuery } from "./query.ts";
import type { ViewedRollout } from "./viewed-run.ts";

/** `flat`: all measured rewards are equal, so the group teaches nothing. */
export type GroupLook = "flat" | "mixed" | "unmeasured" | "open";

export type GroupRow = { group_id: string | null; rollouts: ViewedRollout[]; look: GroupLook };

export type TaskRow = {
  task_id: string | null;
  groups: GroupRow[];
  rollouts: number;
  /** null if nothing was measured. */
  mean: number | null;
  flat: number;
  mixed: number;
  /** Reason -> number of rollouts without a reward. */
  nulls: Record<string, number>;
};

/**
 * Sorts tasks that always fail first, then tasks that always pass. Next come tasks with nulls, then mixed tasks, those
 * with a mean near 0.5 first.
 */
export function taskRows(rollouts: readonly ViewedRollout[]): TaskRow[] {
  const tasks = Map.groupBy(rollouts, ({ entry }) => entry.task_id);
  return [...tasks].map(([task_id, all]) => toTask(task_id, all)).sort((a, b) => worth(b) - worth(a));
}

function worth({ flat, groups, mean, nulls, mixed }: TaskRow): number {
  const share = groups.length === 0 ? 0 : flat / groups.length;
  const lost = Object.values(nulls).reduce((sum, count) => sum + count, 0);
  if (share === 1 && mixed === 0) return 4 - (mean ?? 0);
  return lost > 0 ? 2 : share + (mean === null ? 0 : 0.5 - Math.abs(0.5 - mean));
}

function toTask(task_id: string | null, rollouts: ViewedRollout[]): TaskRow {
  const groups = [...Map.groupBy(rollouts, ({ entry }) => entry.group_id)].map(([group_id, all]) => ({
    group_id,
    rollouts: bySample(all),
    look: lookOf(all),
  }));
  const rewards = rollouts.flatMap(({ entry }) => entry.reward ?? []);
  const nulls = new Map<string, number>();
  for (const { entry } of rollouts) if (entry.reward === null) nulls.set(nullReason(entry), (nulls.get(nullReason(entry)) ?? 0) + 1);
  return {
    task_id,
    groups,
    rollouts: rollouts.length,
    mean: rewards.length === 0 ? null : rewards.reduce((sum, one) => sum + one, 0) / rewards.length,
    flat: groups.filter(({ look }) => look === "flat").length,
    mixed: groups.filter(({ look }) => look === "mixed").length,
    nulls: Object.fromEntries(nulls),
  };
}

function lookOf(rollouts: readonly ViewedRollout[]): GroupLook {
  if (rollouts.some(({ entry }) => isOpen(entry))) return "open";
  const rewards = rollouts.flatMap(({ entry }) => entry.reward ?? []);
  if (rewards.length === 0) return "unmeasured";
  // A single sample cannot be compared.
  return rewards.length > 1 && new Set(rewards).size === 1 ? "flat" : "mixed";
}

/** Returns the address fields of the list that holds one group. */
export function groupQuery(task: string | null, group: string | null): string {
  const given = new Map<string, string>();
  if (task !== null) given.set("task", task);
  if (group !== null) given.set("group", group);
  return writeListQuery(given);
}

/** Puts the samples of each group beside each other, in their order. Groups stay in the order of the run. */
export function inGroups(rollouts: readonly ViewedRollout[]): ViewedRollout[] {
  return [...Map.groupBy(rollouts, ({ entry }) => JSON.stringify([entry.task_id, entry.group_id])).values()].flatMap(bySample);
}

function bySample(rollouts: ViewedRollout[]): ViewedRollout[] {
  return rollouts.toSorted((a, b) => (a.entry.sample_index ?? 0) - (b.entry.sample_index ?? 0));
}
