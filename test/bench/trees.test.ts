/** The short form of `bench/trees.ts`: a tree samples fewer tokens than as many chains, and each token has the weight 1. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Branching } from "../../base/schema/branching.ts";
import { type GroupFigures, runGroups, weigh } from "../../bench/trees/group-of-leaves.ts";
import { brokenOf, treesAgainstChains } from "../../bench/trees/tree-against-chains.ts";
import { startPracticeEngine } from "../../practice/start.ts";

const small = { tasks: 1, turns: 3, leaves: 3, samples: 1, seed: 1, atOnce: 2 };
const engine = () => startPracticeEngine({ seed: 1 });

test("a tree has as many leaves as chains, samples fewer tokens, and trains each token once", {
  timeout: 300_000,
}, async (t) => {
  const { chains, trees, broken } = await treesAgainstChains({ ...small, policies: ["at_turns"], bound: 0.9, engine }, t.signal);
  assert.deepEqual(broken, []);
  const [tree] = trees;
  assert.deepEqual([chains.calls, tree?.figures.calls, tree?.figures.forks], [9, 3 + 2, 2]);
  assert.equal(tree?.ratio, (tree?.figures.sampled_tokens ?? 0) / chains.sampled_tokens);
});

test("the weight of a token shows that it is trained twice or not at all", async (t) => {
  await using practice = await engine();
  const branching = Branching.parse({ policy: "at_turns", leaves: 2, turns: [1] });
  const options = { ...small, turns: 2, leaves: 2, engine: practice.url, branching };
  const seen: GroupFigures = await runGroups(options, t.signal);
  assert.deepEqual(brokenOf("tree", seen, 2), []);
  assert.deepEqual(brokenOf("tree", { ...seen, failed: 1, rendered_forks: 1 }, 3).length, 3);
  const wrong: Record<string, number>[] = [{ "1": 3, "2": 4 }, { "0": seen.sampled_tokens }, { "1": seen.sampled_tokens - 1 }];
  for (const tokens_by_weight of wrong)
    assert.match(brokenOf("tree", { ...seen, tokens_by_weight }, 2).join(), /sampled tokens \d+ have the weight 1/);
  assert.deepEqual(await weigh([]), { rows: 0, tokens_by_weight: {}, strange_tokens: 0 });
});
