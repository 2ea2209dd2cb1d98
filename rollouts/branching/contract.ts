/** What holds for every branching policy: `alidade plugin check` and the contract tests run it. */
import assert from "node:assert/strict";
import type { ContractCheck } from "../../base/host/plug-ins.ts";
import type { BranchingPolicy, ForkPlace, TreeSoFar } from "./branching-policy.ts";

function treesTried(): TreeSoFar[] {
  const places = ["a", "b"].flatMap((rollout_id) =>
    [1, 2, 4].map(
      (turn, index): ForkPlace => ({
        ...{ rollout_id, turn, depth: 0, index, of: 3, after_tools: turn > 1, forks: 0, reward: rollout_id === "a" ? 1 : null },
        surprise: turn === 4 ? null : turn / 10,
      }),
    ),
  );
  const tree = { places, room: 4, width: 2, turns: [2, 3], random: () => 0.5 };
  return [tree, { ...tree, places: [] }, { ...tree, room: 1, width: 1, turns: [] }];
}

export const branchingContract: readonly ContractCheck<BranchingPolicy>[] = [
  {
    says: "it names only places that it was given",
    check(policy) {
      for (const tree of treesTried()) {
        const known = new Set(tree.places.map(({ rollout_id, turn }) => `${rollout_id} ${turn}`));
        for (const { rollout_id, turn } of policy.forks(tree)) assert.ok(known.has(`${rollout_id} ${turn}`), `${rollout_id}, turn ${turn}`);
      }
    },
  },
  {
    says: "it leaves the tree as it is",
    check(policy) {
      for (const { random, ...tree } of treesTried()) {
        const before = structuredClone(tree);
        policy.forks({ ...tree, random });
        assert.deepEqual(tree, before);
      }
    },
  },
];
