/** What holds for every allocation policy: `alidade plugin check` and the contract tests run it. */
import assert from "node:assert/strict";
import type { ContractCheck } from "../../../base/host/plug-ins.ts";
import type { AllocationPolicy, GroupSoFar } from "./allocation-policy.ts";
import { emptyHistory, withRewards } from "./set-history.ts";

const rewardsTried: readonly (readonly number[])[] = [[], [1], [0, 0], [1, 1], [0, 1], [0.25, 0.5, -3]];

function groupsTried(): GroupSoFar[] {
  return rewardsTried.flatMap((rewards) => {
    const group = { task_id: "contract", rewards, samples: 4, first: 2, most: 8, task: emptyHistory, set: emptyHistory };
    const known = withRewards(
      emptyHistory,
      rewards.map((reward, index) => ({ reward, step: index === 0 ? null : index })),
    );
    return [group, { ...group, task: known, set: known }, { ...group, set: known }];
  });
}

export const allocationContract: readonly ContractCheck<AllocationPolicy>[] = [
  {
    says: "it returns a whole number for any group, with and without a history",
    check(policy) {
      for (const group of groupsTried()) assert.ok(Number.isInteger(policy.more(group)), `${JSON.stringify(group)}: no whole number`);
    },
  },
  {
    says: "it leaves the group and its history as they are",
    check(policy) {
      for (const group of groupsTried()) {
        const before = structuredClone(group);
        policy.more(group);
        assert.deepEqual(group, before);
      }
    },
  },
];
