/** Every task that we ship, checked in one backend: gold gets 1 and no change gets 0, each time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import type { Tier, Verdict } from "../../base/schema/rollout.ts";
import { checkTask } from "../../graders/check.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { type Need, need } from "../needs.ts";

/** In a container the work runs apart from the tests in T2, and together with them in T1. */
const shipped: [path: string, ids: string[], tier: Tier, needs: Need[]][] = [
  ["examples/demo/tasks", ["merge-ranges", "parse-duration"], "T2", []],
  ["examples/tasks/swe-npm.jsonl", ["minimist-constructor-pollution", "qs-dunder-proto", "qs-comma-values-only"], "T1", ["npm-registry"]],
  ["examples/tasks/swe-npm.jsonl", ["shell-quote-drive-letter"], "T2", ["npm-registry"]],
];

export function checkAll(backend: SandboxBackend, times: number, isolation: Verdict["isolation"], more: Need[] = []): void {
  for (const [path, ids, tier, needs] of shipped) {
    for (const id of ids) {
      test(`${id}: gold gets 1 and no change gets 0, at each of ${times} gradings (${backend.name})`, async (t) => {
        for (const what of [...more, ...needs]) if (!(await need(t, what))) return;
        const [task] = await loadTasks(`${path}#${id}`);
        assert.ok(task);
        const result = await checkTask(task, backend, {
          times,
          signal: t.signal,
          run_id: "run-test-check",
          owner: await currentOwner(),
        });
        const rewards = result.runs.map((run) => [run.attempt, run.verdict.reward]);
        assert.deepEqual(
          rewards,
          Array(times)
            .fill([
              ["gold", 1],
              ["no-op", 0],
            ])
            .flat(),
          JSON.stringify(result.runs.map((run) => run.verdict)),
        );
        assert.equal(result.passed, true);
        for (const { verdict, attempt } of result.runs) {
          assert.deepEqual([verdict.tier, verdict.isolation, verdict.status], [isolation === "none" ? "T0" : tier, isolation, "graded"]);
          assert.equal(verdict.evidence.no_change, attempt === "no-op");
        }
      });
    }
  }
}
