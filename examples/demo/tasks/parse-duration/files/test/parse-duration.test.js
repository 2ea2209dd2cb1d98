import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDuration } from "../src/parse-duration.js";

test("one unit", () => {
  assert.equal(parseDuration("250ms"), 250);
  assert.equal(parseDuration("90s"), 90_000);
  assert.equal(parseDuration("2h"), 7_200_000);
});

test("fractions", () => {
  assert.equal(parseDuration("1.5 h"), 5_400_000);
});

test("text without a duration", () => {
  assert.throws(() => parseDuration("soon"), TypeError);
});
