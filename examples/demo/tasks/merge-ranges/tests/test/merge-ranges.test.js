import assert from "node:assert/strict";
import { test } from "node:test";
import { mergeRanges } from "../src/merge-ranges.js";

test("separate ranges stay as they are", () => {
  assert.deepEqual(mergeRanges([[1, 2], [4, 6]]), [[1, 2], [4, 6]]);
});

test("overlapping ranges are joined", () => {
  assert.deepEqual(mergeRanges([[2, 5], [1, 3]]), [[1, 5]]);
});

test("the input is left alone", () => {
  const input = [[2, 5], [1, 3]];
  mergeRanges(input);
  assert.deepEqual(input, [[2, 5], [1, 3]]);
});

test("a range inside another one does not shorten it", () => {
  assert.deepEqual(mergeRanges([[1, 10], [2, 3]]), [[1, 10]]);
});

test("what follows a contained range is still joined", () => {
  assert.deepEqual(mergeRanges([[1, 10], [2, 3], [8, 12], [20, 21]]), [[1, 12], [20, 21]]);
});

test("touching ranges are joined", () => {
  assert.deepEqual(mergeRanges([[1, 2], [2, 4]]), [[1, 4]]);
});
