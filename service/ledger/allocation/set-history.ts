/**
 * What the groups of a set have measured before, as an allocation policy gets it. Only the first samples of a group count:
 * each group has them, whatever the policy says. Counts are kept for each task and policy step, never for each rollout.
 */
import { z } from "zod";
import { passReward } from "../../../base/schema/rollout.ts";

/** Rewards that stand. `passed`: how many of them are 1 or more. */
const RewardCounts = z.strictObject({
  measured: z.number(),
  passed: z.number(),
  sum: z.number(),
  lowest: z.number(),
  highest: z.number(),
});
export type RewardCounts = z.infer<typeof RewardCounts>;

/** `step`: of the oldest weights that sampled in the rollout; null: it is not known. */
const CountsAtStep = RewardCounts.extend({ step: z.number().nullable() });
export type CountsAtStep = z.infer<typeof CountsAtStep>;

export const History = z.strictObject({
  total: RewardCounts.nullable().describe("null: nothing was measured"),
  steps: z.array(CountsAtStep).describe("the newest policy steps, the newest one last"),
});
export type History = z.infer<typeof History>;

/** Bounds what a ledger stores for a task to about 1.5 kB. Older steps count in `total` only. */
export const mostSteps = 16;

export const emptyHistory: History = { total: null, steps: [] };

/** Returns the history with these rewards counted. Changes nothing that it gets. */
export function withRewards(history: History, rewards: readonly { reward: number; step: number | null }[]): History {
  return rewards.reduce((so_far, { reward, step }) => {
    const known = so_far.steps.find((one) => one.step === step);
    const others = so_far.steps.filter((one) => one !== known);
    const steps = [...others, { ...counted(known ?? null, reward), step }].toSorted((one, other) => orderOf(one) - orderOf(other));
    return { total: counted(so_far.total, reward), steps: steps.slice(-mostSteps) };
  }, history);
}

/** Rewards of an unknown step come first, so they are dropped first. */
function orderOf({ step }: CountsAtStep): number {
  return step ?? Number.NEGATIVE_INFINITY;
}

function counted(before: RewardCounts | null, reward: number): RewardCounts {
  const { measured = 0, passed = 0, sum = 0, lowest = reward, highest = reward } = before ?? {};
  return {
    measured: measured + 1,
    passed: passed + Number(reward >= passReward),
    sum: sum + reward,
    lowest: Math.min(lowest, reward),
    highest: Math.max(highest, reward),
  };
}
