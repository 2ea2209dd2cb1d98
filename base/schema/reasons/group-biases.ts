/** Why rewards of a set are not those of all its rollouts: tools of groups that end some before they are over. */
import type { Meaning } from "./meaning.ts";

const cure = "leave the field out, and bound single rollouts by `budgets`, whose ends are graded";

export const groupBiases = {
  over_provision: {
    what: "The first results are the group and the slower rollouts are cancelled, so quick rollouts, and the rewards that go with them, are over-represented.",
    cure,
  },
  early_stop: {
    what: "The group ends with its first results, so it is smaller than its size, and slow rollouts are missing.",
    cure,
  },
  allocation: {
    what: "Groups whose first rewards are all equal end there, and groups with mixed rewards get more samples, so tasks that are neither easy nor hard are over-represented, and the first samples decide how large a group is.",
    cure: "leave the field out: then each group has `samples`",
  },
  branching: {
    what: "Forks share the beginning of another rollout of their group, so its rewards are no independent samples; which turns are forked is the policy's choice.",
    cure: "leave the field out: then each rollout begins at the task's beginning",
  },
  straggler_cut: { what: "Rollouts that are slower than their group are cancelled without a reward, so slow rollouts are missing.", cure },
  straggler_park: {
    what: "Rollouts that are slower than their group go on in a later group of their task, so a group lacks its own slow rollouts and may have those of earlier groups, whose first tokens an older policy sampled.",
    cure: "leave `rest` of `straggler_cut` out: then they are cancelled for good",
  },
} as const satisfies Record<string, Meaning>;

export type GroupBias = keyof typeof groupBiases;
