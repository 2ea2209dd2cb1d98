/** When a machine that breaks its attempts leaves them to others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorCode } from "../../errors.ts";
import { BrokenStreak } from "../../node/broken-streak.ts";

const after = (...ends: (ErrorCode | null)[]): BrokenStreak => {
  const streak = new BrokenStreak();
  for (const end of ends) streak.ended(end);
  return streak;
};

test("three attempts in a row that the machine broke begin the pauses, which grow to a minute", () => {
  const broken = (times: number) => Array.from({ length: times }, (): ErrorCode => "sandbox_error");
  assert.deepEqual([after(...broken(2)).isOn, after(...broken(2)).pauseMs, after(...broken(2)).faults()], [false, 0, []]);
  assert.deepEqual(
    [3, 4, 5, 6, 7, 50].map((times) => after(...broken(times)).pauseMs / 1000),
    [5, 10, 20, 40, 60, 60],
  );
  assert.match(after(...broken(3)).faults()[0]?.reason ?? "", /the last 3 attempts were broken here \(sandbox_error\).*every 5 s/);
});

test("one that is not broken ends them", () => {
  const streak = after("sandbox_error", "store_full", "image_pull_failed");
  assert.ok(streak.isOn);
  streak.ended(null);
  assert.ok(!streak.isOn);
  assert.deepEqual(streak.faults(), []);
});

test("an engine that is away and a node that is stopped say nothing of the machine", () => {
  assert.ok(!after("engine_unreachable", "engine_error", "cancelled", "engine_unreachable", "cancelled").isOn);
  assert.ok(after("sandbox_error", "engine_unreachable", "sandbox_error", "sandbox_error").isOn);
});
