/** When a machine that breaks its attempts leaves them to others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ErrorCode } from "../../../base/errors.ts";
import { BrokenStreak } from "../../../service/nodes/broken-streak.ts";

/** Ends of attempts, each at another task. */
const after = (...ends: (ErrorCode | null)[]): BrokenStreak => {
  const streak = new BrokenStreak();
  ends.forEach((end, at) => void streak.ended(end, `task${at}`));
  return streak;
};

test("three tasks in a row that the machine broke begin the pauses, which grow to a minute", () => {
  const broken = (times: number) => Array.from({ length: times }, (): ErrorCode => "sandbox_error");
  assert.deepEqual([after(...broken(2)).isOn, after(...broken(2)).pauseMs, after(...broken(2)).faults()], [false, 0, []]);
  assert.deepEqual(
    [3, 4, 5, 6, 7, 50].map((times) => after(...broken(times)).pauseMs / 1000),
    [5, 10, 20, 40, 60, 60],
  );
  assert.match(after(...broken(3)).faults()[0]?.reason ?? "", /attempts at 3 tasks in a row were broken here \(sandbox_error\).*every 5 s/);
});

test("a bad task, whatever its group's size, holds up no other one", () => {
  const streak = new BrokenStreak();
  for (let at = 0; at < 64; at++) streak.ended("sandbox_error", at % 2 ? "bad" : "worse");
  assert.ok(!streak.isOn);
});

test("one that is not broken ends them, and the pause that goes on", async () => {
  const streak = after("sandbox_error", "store_full", "sandbox_unavailable");
  assert.ok(streak.isOn);
  const resting = streak.rest(new AbortController().signal);
  streak.ended(null, "good");
  await resting;
  assert.deepEqual([streak.isOn, streak.faults()], [false, []]);
});

test("engines that are away, images, demands of a set and a node that is stopped say nothing of the machine", () => {
  const others: ErrorCode[] = ["engine_unreachable", "engine_error", "cancelled", "image_pull_failed", "image_build_failed", "node_unfit"];
  assert.ok(!after(...others, "sandbox_error", "sandbox_error").isOn);
  assert.ok(after("sandbox_error", ...others, "sandbox_error", "sandbox_error").isOn);
});
