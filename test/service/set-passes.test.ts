import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { GroupPart, type Ledger, SetSpec, SqliteLedger } from "../../service/ledger/index.ts";
import { SetPasses } from "../../service/set-passes.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";

const scratch = scratchFolder("set-passes");
const forever = new AbortController().signal;

async function measured(ledger: Ledger, key: string, rewards: readonly number[]): Promise<string> {
  const { set_id } = await ledger.putSet(key, SetSpec.parse({ samples: rewards.length }));
  const task = (task_id: string) => ({ task_id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
  await ledger.submit(
    set_id,
    ["a", "b"].map((id) => GroupPart.parse({ group_key: id, task: task(id) })),
  );
  const lease = await ledger.join({ name: key, slots: 99 });
  for (const claim of await ledger.claim(lease, 99)) await ledger.finish(claim, attemptResult({ reward: rewards[claim.index] ?? null }));
  return set_id;
}

test("continuous rewards are counted for each task, and readings beyond the bound are dropped and made again", async () => {
  await using ledger = SqliteLedger.open(join(scratch, "passes.sqlite"));
  const fresh: string[] = [];
  const results: Ledger["results"] = (set, after, ...more) => {
    if (after === null) fresh.push(set);
    return ledger.results(set, after, ...more);
  };
  const watched = new Proxy(ledger, { get: (target, name) => (name === "results" ? results : bound(target, name)) });
  const rewards = Array.from({ length: 8 }, (_, index) => index / 7);
  const sets = [await measured(ledger, "s1", rewards), await measured(ledger, "s2", rewards)];
  const [one = "", two = ""] = sets;
  const passes = new SetPasses(watched, { readings: 9, tasks: 3 });
  const countsOf = async (set: string, pass: number) => (await passes.of(set, pass, forever)).get("a");
  assert.deepEqual([await countsOf(one, 0.5), await countsOf(one, 0.5)], Array(2).fill({ measured: 8, passed: 4 }));
  assert.deepEqual(fresh, [one], "the second question reads what is new");
  assert.deepEqual(
    [await countsOf(two, 0.5), await countsOf(one, 0.9)],
    [
      { measured: 8, passed: 4 },
      { measured: 8, passed: 1 },
    ],
  );
  assert.deepEqual(await countsOf(one, 0.5), { measured: 8, passed: 4 });
  assert.deepEqual(fresh, [one, two, one, one], "two tasks fit beside no others");
});

function bound(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === "function" ? value.bind(target) : value;
}
