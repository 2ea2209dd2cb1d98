/**
 * Advantages within a group, for trainers that take them ready. The baseline has one entry for each rollout, however
 * many rows its contexts forked into: a trainer that counts rows would weigh a rollout by its forks.
 */
import { AlidadeError } from "../../base/errors.ts";

export const advantageMethods = ["grpo", "dr_grpo", "rloo", "leave_one_out"] as const;

/**
 * With r the rollout's reward, and mean and std (of a sample: n - 1) over the baseline's entries:
 * grpo: (r - mean) / (std + epsilon). dr_grpo: r - mean, without the division that favours groups that nearly agree.
 * rloo: r - the mean of the others. leave_one_out: the same over (std of all + epsilon).
 */
export type AdvantageMethod = (typeof advantageMethods)[number];

/** One rollout, or one of its rows: those with equal `rollout_id` are one entry. */
export type BaselineEntry = {
  rollout_id: string;
  /** null: nothing was measured; it is in no baseline and gets no advantage. */
  reward: number | null;
  in_loss: boolean;
  in_baseline: boolean;
};

export type GroupAdvantages = {
  /** One for each member given, in their order; null with its reason. */
  advantages: (number | null)[];
  reasons: ("no_reward" | "not_in_loss" | "no_baseline" | null)[];
  baseline: { entries: number; mean: number | null; std: number | null };
  /** All entries are equal: every advantage of a rollout in it is 0, and the group teaches nothing. */
  zero_variance: boolean;
};

/** As verl and TRL have it. */
const defaultEpsilon = 1e-6;

/** Throws `request_invalid` where rows of one rollout disagree about it: then its reward is no rollout's. */
export function groupAdvantages(members: BaselineEntry[], method: AdvantageMethod, epsilon = defaultEpsilon): GroupAdvantages {
  const rollouts = oneEach(members);
  const entries = [...rollouts.values()].flatMap(({ reward, in_baseline }) => (in_baseline && reward !== null ? [reward] : []));
  const baseline = toBaseline(entries);
  const zero_variance = entries.length > 1 && entries.every((entry) => entry === entries[0]);
  const results = members.map((member) => advantageOf(member, entries, { ...baseline, zero_variance, epsilon }, method));
  return {
    advantages: results.map((result) => (typeof result === "string" ? null : result)),
    reasons: results.map((result) => (typeof result === "string" ? result : null)),
    baseline,
    zero_variance,
  };
}

function oneEach(members: BaselineEntry[]): Map<string, BaselineEntry> {
  const rollouts = new Map<string, BaselineEntry>();
  for (const member of members) {
    const known = rollouts.get(member.rollout_id);
    if (known === undefined) rollouts.set(member.rollout_id, member);
    else if (known.reward !== member.reward || known.in_baseline !== member.in_baseline)
      throw new AlidadeError(
        "request_invalid",
        `Rollout ${member.rollout_id} has rows of reward ${known.reward} and ${member.reward}: give all of its rows the rollout's reward.`,
        { param: "reward" },
      );
  }
  return rollouts;
}

function toBaseline(entries: number[]): GroupAdvantages["baseline"] {
  const { length } = entries;
  const mean = length === 0 ? null : sum(entries) / length;
  const std = mean === null || length < 2 ? null : Math.sqrt(sum(entries.map((entry) => (entry - mean) ** 2)) / (length - 1));
  return { entries: length, mean: finite(mean), std: finite(std) };
}

type Around = GroupAdvantages["baseline"] & { zero_variance: boolean; epsilon: number };
type Result = number | Exclude<GroupAdvantages["reasons"][number], null>;

function advantageOf(member: BaselineEntry, entries: number[], around: Around, method: AdvantageMethod): Result {
  const { reward, in_loss, in_baseline } = member;
  if (reward === null) return "no_reward";
  if (!in_loss) return "not_in_loss";
  const isAlone = entries.length === 0 || (entries.length === 1 && in_baseline);
  // A rollout alone in its group has advantage 0.
  if (isAlone || around.mean === null) return "no_baseline";
  if (around.zero_variance && reward === entries[0]) return 0;
  const isScaled = method !== "dr_grpo" && method !== "rloo";
  // Equal entries are no measure of how far away another reward is.
  if (around.zero_variance && isScaled) return "no_baseline";
  const others = in_baseline ? (sum(entries) - reward) / (entries.length - 1) : around.mean;
  const distance = reward - (method === "rloo" || method === "leave_one_out" ? others : around.mean);
  if (isScaled && around.std === null) return "no_baseline";
  return finite(isScaled ? distance / ((around.std ?? 0) + around.epsilon) : distance) ?? "no_baseline";
}

/** null: rewards are so far apart that no number holds what is between them. */
function finite(value: number | null): number | null {
  return Number.isFinite(value) ? value : null;
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
