import assert from "node:assert/strict";
import { test } from "node:test";
import type { Verdict } from "../../../base/schema/rollout.ts";
import { lossOf } from "../../../reconstruct/trained/loss-of.ts";

const verdict = { reward: 0, status: "graded", error: null } as Verdict;
const run = (changed: Partial<NonNullable<Parameters<typeof lossOf>[0]>>) => ({ stop_reason: "exited", slow_engine: false, ...changed });

test("a rollout that a clock cut counts, and not where the engine was slow for all", () => {
  for (const stop_reason of ["harness_timeout", "budget_spent"])
    for (const slow_engine of [true, false]) {
      const loss = lossOf(run({ stop_reason, slow_engine }), verdict, null, 3);
      assert.deepEqual([loss.status, loss.in_loss, loss.in_baseline], ["cut", !slow_engine, !slow_engine], `${stop_reason} ${slow_engine}`);
    }
});

test("a rollout that its own turns or tokens cut counts, however long the engine took", () => {
  assert.deepEqual(lossOf(run({ stop_reason: "budget_spent" }), verdict, null, 3), {
    status: "cut",
    in_loss: true,
    in_baseline: true,
    mask_reason: null,
  });
});
