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

test("several units add up", () => {
  assert.equal(parseDuration("1h 30m"), 5_400_000);
  assert.equal(parseDuration("1d2h3m4s5ms"), 93_784_005);
});

test("a smaller unit may come first", () => {
  assert.equal(parseDuration("30s 1m"), 90_000);
});
