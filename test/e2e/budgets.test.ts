/** A spent budget ends a real harness within one request, its own retries notwithstanding. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Budgets } from "../../schema/session-log.ts";
import type { PersistentHarness } from "../harness/with-retries.ts";
import { faultyRun } from "./faulty-run.ts";

/** Budgets that the first turn spends: what is refused is the second. */
const spentByOneTurn: Record<PersistentHarness, Budgets[]> = {
  pi: [{ max_turns: 1 }, { max_prompt_tokens: 1 }],
  codex: [{ max_turns: 1 }, { max_sampled_tokens: 1 }],
  "gemini-cli": [{ max_turns: 1 }],
  "claude-code": [{ max_turns: 1 }, { max_wall_seconds: 0.001 }],
};

for (const [harness, all] of Object.entries(spentByOneTurn) as [PersistentHarness, Budgets[]][])
  for (const budgets of all)
    test(`${harness} stops at its next request when ${Object.keys(budgets)} is spent`, { timeout: 120_000 }, async (t) => {
      for (const relay of ["settled", "live"] as const) {
        const run = await faultyRun(t, { harness, spec: { relay, budgets } });
        if (run === null) return;
        assert.equal(run.asked.length, 1, "asked once, and not again");
        assert.equal(run.failed, true, run.ended.stdout);
        assert.deepEqual(
          run.entries.flatMap((entry) => (entry.type === "refused" ? [entry.error.code] : [])),
          ["budget_spent"],
        );
        assert.match(`${run.ended.stdout}${run.ended.stderr}`, new RegExp(`spent its budget ${Object.keys(budgets)}`));
        assert.deepEqual([run.trajectory.calls.length, run.sampled], [1, 0]);
        assert.ok(run.trajectory.fidelity.trainable_tokens > 0, "what was done before is trained");
      }
    });
