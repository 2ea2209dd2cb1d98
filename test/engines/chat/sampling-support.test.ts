import assert from "node:assert/strict";
import { test } from "node:test";
import { checkedSupport, isCut, listedSupport } from "../../../engines/chat/sampling-support.ts";

const listed = (...probabilities: number[]) => probabilities.map((one, id) => ({ id, logprob: one === 0 ? null : Math.log(one) }));

test("a list is a set if it goes on with a token that was cut, and its probabilities add up to 1", () => {
  assert.deepEqual(listedSupport(1, listed(0.7, 0.3, 0), 0), [0, 1]);
  assert.equal(listedSupport(1, listed(0.7, 0.2, 0), 0), "misfit");
  assert.equal(listedSupport(2, listed(0.7, 0.3, 0), 0), "misfit");
  assert.equal(listedSupport(0, listed(0.7, 0.3), 0), "cut_short");
});

test("a full list is a set only where no tied token can be missing", () => {
  assert.deepEqual(listedSupport(1, listed(0.7, 0.3), 2), [0, 1]);
  assert.equal(listedSupport(1, listed(0.5, 0.25), 2), "cut_short");
  // The noise of float32 sums could hide a tied token as small as that.
  assert.equal(listedSupport(0, listed(1 - 1e-6, 1e-6), 2), "cut_short");
  assert.equal(listedSupport(1, listed(0.7, 0.3), 3), "cut_short");
});

test("a set holds ids once, and the sampled one among them", () => {
  assert.deepEqual(checkedSupport(7, [7, 9]), [7, 9]);
  for (const ids of [[], [9], [7, 7], [7, -1], [7, 1.5], [7, "9"], [7, 2 ** 31], [7, null]]) assert.equal(checkedSupport(7, ids), "misfit");
  assert.equal(
    checkedSupport(
      7,
      Array.from({ length: 65_537 }, (_, id) => id),
    ),
    "misfit",
  );
});

test("a parameter that leaves out no token cuts nothing", () => {
  for (const sampling of [{}, { top_p: 1 }, { top_k: 0 }, { top_k: -1 }, { min_p: 0 }]) assert.equal(isCut(sampling), false);
  for (const sampling of [{ top_p: 0.9 }, { top_k: 1 }, { min_p: 0.1 }]) assert.equal(isCut(sampling), true);
});
