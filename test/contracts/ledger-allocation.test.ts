/** What every ledger tells an allocation policy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Allocations, GroupPart, type GroupSoFar, SetSpec } from "../../service/ledger/index.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { need } from "../needs.ts";
import { ledgerDrivers } from "./ledger-drivers.ts";

const part = (group_key: string, task_id: string) =>
  GroupPart.parse({ group_key, task: { task_id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } } });
const spec = SetSpec.parse({ samples: 3, allocation: { policy: "watching", first: 2, most: 5 } });
const counts = (measured: number, passed: number, sum: number, lowest: number, highest: number) => ({
  measured,
  passed,
  sum,
  lowest,
  highest,
});

for (const { name, needs, place } of ledgerDrivers()) {
  test(`${name}: a policy sees what earlier groups of its task and of its set measured, by policy step, also after a restart`, async (t) => {
    if (needs !== undefined && !(await need(t, needs))) return;
    const seen: GroupSoFar[] = [];
    const more = (group: GroupSoFar): number => {
      seen.push(structuredClone(group));
      return 1;
    };
    const allocations = () => new Allocations([{ name: "watching", title: "looks on", more }]);
    const at = place();
    let ledger = await at.open(undefined, allocations());
    t.after(() => ledger[Symbol.asyncDispose]());
    const { set_id } = await ledger.putSet("s", spec);
    const run = async (group: string, task: string, rewards: (number | null)[], step: number) => {
      const lease = await ledger.join({ name: `n-${group}`, slots: 9 });
      await ledger.submit(set_id, [part(group, task)]);
      const claims = await ledger.claim(lease, 9);
      for (const one of claims) {
        const reward = rewards[one.index] ?? null;
        const failed = { state: "failed", reward: null, mask_reason: "sandbox_died" } as const;
        await ledger.finish(one, attemptResult(reward === null ? failed : { reward, oldest_step: step, newest_step: step }));
      }
      // The later sample counts in no history.
      for (const one of await ledger.claim(lease, 9)) await ledger.finish(one, attemptResult({ reward: 1, oldest_step: step }));
    };
    await run("a", "fix", [1, 0.25], 3);
    await run("b", "other", [0, null], 3);
    await ledger[Symbol.asyncDispose]();
    ledger = await at.open(undefined, allocations());
    await run("c", "fix", [1, 1], 4);
    await run("d", "fix", [0, 0], 4);
    const [a, b, c, d] = seen;
    assert.deepEqual(
      [a?.task_id, a?.rewards.toSorted(), a?.task, a?.set],
      ["fix", [0.25, 1], { total: null, steps: [] }, { total: null, steps: [] }],
    );
    const first = counts(2, 1, 1.25, 0.25, 1);
    assert.deepEqual([b?.task.total, b?.set], [null, { total: first, steps: [{ ...first, step: 3 }] }]);
    const both = counts(3, 1, 1.25, 0, 1);
    assert.deepEqual([c?.task.total, c?.set], [first, { total: both, steps: [{ ...both, step: 3 }] }]);
    assert.deepEqual(d?.task, {
      total: counts(4, 3, 3.25, 0.25, 1),
      steps: [
        { ...first, step: 3 },
        { ...counts(2, 2, 2, 1, 1), step: 4 },
      ],
    });
    assert.equal(seen.length, 4);
  });

  test(`${name}: a set that names a policy which its service does not know is refused, and the names are told`, async (t) => {
    if (needs !== undefined && !(await need(t, needs))) return;
    await using ledger = await place().open();
    await assert.rejects(ledger.putSet("s", spec), {
      code: "request_invalid",
      param: "allocation.policy",
      message: /^allocation\.policy is "watching", and this service knows balanced: /,
    });
  });
}
