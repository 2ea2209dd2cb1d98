import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { ObservedTimes } from "../../../service/watch/index.ts";
import { stageTimes } from "../../../service/watch/stage-times.ts";

const times = { queued: 1000, init: 2000, ready: 3000, run: 3000, ran: 9000, post: 9000 };

const record: RolloutRecord = {
  schema_version: 1,
  ...{ rollout_id: "a", attempt: 1, task_id: "task", task_hash: "h", group_id: "grp", group_size: 2, sample_index: 0 },
  ...{ harness: "pi", harness_version: "1", state: "done", session_id: null, stop_reason: "exited", exit_code: 0, verdict: null },
  ...{ revision: 1, error: null, mask_reason: null, sandbox: null, setup: null, work: null, steps: [], network: null, times: {} },
  ...{ output_tail: null, summary: null, services: null, forked_from: null, replay: null, resume: null, user: null },
};

function ended(more: Record<string, number>) {
  return { set_id: "s", record: { ...record, times: { ...times, ...more } }, stored: 15_000 };
}

test("the teacher's time is a stage of its own, and grading ends where it begins", () => {
  const stages = (more: Record<string, number>) =>
    stageTimes(ended(more)).map(({ name, start, end, isCut }) => [name, end - start, ...(isCut ? ["cut"] : [])]);
  const before = [
    ["queue", 1000],
    ["init", 1000],
    ["run", 6000],
  ];
  assert.deepEqual(stages({ done: 12_000 }), [...before, ["grade", 3000], ["store", 3000]]);
  assert.deepEqual(stages({ teach: 12_000, done: 14_000 }), [...before, ["grade", 3000], ["teach", 2000], ["store", 1000]]);
});

test("attempts are counted by whether their teacher scored them", () => {
  const observed = new ObservedTimes();
  const each: Record<string, number>[] = [{}, { teach: 12_000 }, { teach: 12_000, scored: 13_000 }, { teach: 12_000, scored: 13_000 }];
  for (const more of each) observed.attempt(ended({ ...more, done: 14_000 }));
  const family = observed.families().find(({ name }) => name === "alidade_teacher_attempts_total");
  assert.deepEqual(
    family?.samples.map(({ labels, value }) => [labels.outcome, value]),
    [
      ["scored", 2],
      ["unscored", 1],
    ],
  );
});
