import assert from "node:assert/strict";
import { test } from "node:test";
import { findMisalignment } from "../../tokens/alignment.ts";

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
