/** A spent budget ends a real harness within one request, its own retries notwithstanding. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Budgets } from "../../base/schema/session-spec.ts";
import { said } from "../fakes/engines/scripted-engine.ts";
import type { PersistentHarness } from "../harness/with-retries.ts";
import { faultyRun, scriptOf } from "./faulty-run.ts";

/** Budgets that the first turn spends: what is refused is the second. */
const spentByOneTurn: Record<PersistentHarness, Budgets[]> = {
  pi: [{ max_turns: 1 }, { max_prompt_tokens: 1 }],
  codex: [{ max_turns: 1 }],
  "gemini-cli": [{ max_turns: 1 }],
  "claude-code": [{ max_turns: 1 }],
};

for (const [harness, all] of Object.entries(spentByOneTurn) as [PersistentHarness, Budgets[]][])
  for (const budgets of all)
    test(`${harness} stops at its next request when ${Object.keys(budgets)} is spent`, { timeout: 300_000 }, async (t) => {
      for (const relay of ["buffered", "live"] as const) {
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

for (const harness of Object.keys(spentByOneTurn) as PersistentHarness[])
  for (const budgets of [{ max_sampled_tokens: firstTurn(harness) + 5 }, { max_wall_seconds: 1.5 }] satisfies Budgets[])
    test(`${harness} stops when ${Object.keys(budgets)} is spent in the middle of a turn`, { timeout: 300_000 }, async (t) => {
      for (const relay of ["buffered", "live"] as const) {
        // The second turn never ends by itself.
        const run = await faultyRun(t, { harness, spec: { relay, budgets }, holdEnd: () => new Promise(() => undefined) });
        if (run === null) return;
        // Gemini CLI ends at an error in a stream without a word and with exit code 0; the session's stop reason tells.
        if (harness !== "gemini-cli") {
          assert.equal(run.failed, true, JSON.stringify(run.ended));
          assert.match(`${run.ended.stdout}${run.ended.stderr}`, /out of budget/);
        }
        const cut = run.trajectory.calls.filter((call) => call.error?.code === "budget_spent");
        const refused = run.entries.filter((entry) => entry.type === "refused" && entry.error.code === "budget_spent");
        t.diagnostic(`${relay}: ${run.trajectory.calls.length} calls, ${cut.length} cut, ${refused.length} refused after it`);
        // On a slow machine the time can be over between two turns: then the next one is refused, and nothing was cut.
        if (budgets.max_sampled_tokens !== undefined) assert.equal(cut.length, 1);
        assert.ok(cut.length + refused.length >= 1 && refused.length <= 1, "it asks for no more than a last time");
      }
    });

/** Tokens of the first turn that the scripted engine plays. */
function firstTurn(harness: PersistentHarness): number {
  return said(scriptOf(harness, { model: "", messages: [] }, 0)).length + 1;
}
