import assert from "node:assert/strict";
import { test } from "node:test";
import { compareRuns } from "../../../view/run/compare-runs.ts";
import type { Entry } from "../../../view/run/entries.ts";

const entries = (rewards: Record<string, (number | null)[]>): Entry[] =>
  Object.entries(rewards).flatMap(([task_id, all]) => all.map((reward) => ({ task_id, reward }) as Entry));

test("tasks that both runs measured make the difference, each by the same weight, with Student's interval over them", () => {
  const one = entries({ a: [0, 0, 0, 1], b: [0], c: [0.5, null], alone: [1], lost: [null] });
  const other = entries({ a: [1, 0], b: [1, 1, 1], c: [0.5], lost: [1], new: [0] });
  const { tasks, paired, difference, interval, means } = compareRuns(one, other);
  assert.deepEqual([paired, difference], [3, (0.25 + 1 + 0) / 3]);
  assert.deepEqual(means, { one: (0.25 + 0 + 0.5) / 3, other: (0.5 + 1 + 0.5) / 3 });
  // Differences 0.25, 1 and 0: deviation 0.5204, t of two degrees 4.303.
  assert.ok(Math.abs((interval?.low ?? 0) - (0.41667 - 1.29286)) < 1e-3, `${interval?.low}`);
  assert.ok(Math.abs((interval?.high ?? 0) - (0.41667 + 1.29286)) < 1e-3, `${interval?.high}`);
  assert.deepEqual(
    tasks.map(({ task_id, difference: by }) => [task_id, by]),
    [
      ["b", 1],
      ["a", 0.25],
      ["c", 0],
      ["alone", null],
      ["lost", null],
      ["new", null],
    ],
  );
});

test("no interval is made of one task, nor of tasks that all differ by the same", () => {
  assert.equal(compareRuns(entries({ a: [0] }), entries({ a: [1] })).interval, null);
  assert.equal(compareRuns(entries({ a: [0], b: [0] }), entries({ a: [1], b: [1] })).interval, null);
  assert.deepEqual(compareRuns([], []), { tasks: [], paired: 0, difference: null, interval: null, means: null });
});
