import assert from "node:assert/strict";
import { test } from "node:test";
import { findMisalignment, isLogprob } from "../../../base/tokens/alignment.ts";

test("ids and logprobs of one length are aligned, missing ones included", () => {
  assert.equal(findMisalignment([1, 2, 3], [-0.5, null, 0]), null);
  assert.equal(findMisalignment(Int32Array.of(1), [-1]), null);
  assert.equal(findMisalignment([1, 2], null), null);
});

test("a list that is one entry off is named with both lengths", () => {
  assert.match(findMisalignment([1, 2, 3], [-1, -1]) ?? "", /3 token ids came with 2 logprobs/);
});

test("what is no number is named with its position", () => {
  assert.match(findMisalignment([1, 2], [-1, Number.NEGATIVE_INFINITY]) ?? "", /token 1 .*-Infinity/);
  assert.match(findMisalignment([1, -2], [-1, -1]) ?? "", /token 1 has the id -2/);
});

test("a logprob above 0 is no measurement, but for what an approximate logarithm rounds", () => {
  assert.match(findMisalignment([1, 2], [-1, 0.3]) ?? "", /token 1 has the logprob 0.3, which is above 0/);
  assert.match(findMisalignment([1], [Number.POSITIVE_INFINITY]) ?? "", /not finite/);
  assert.equal(findMisalignment([1, 2], [2.4e-7, -0]), null);
  for (const value of [0.3, 1.1e-6, Number.NaN, Number.POSITIVE_INFINITY, null, "-1"]) assert.equal(isLogprob(value), false, String(value));
  for (const value of [0, -0, -50, 1e-7]) assert.equal(isLogprob(value), true, String(value));
});
