import assert from "node:assert/strict";
import { test } from "node:test";
import { meanPassAtK, passAtK } from "../../../base/statistics/pass-at-k.ts";
import { statisticsOf } from "../../../base/statistics/statistics.ts";

/** By trying every choice of k of the n rollouts. */
function byCounting(n: number, passed: number, k: number): number {
  let [all, some] = [0, 0];
  for (let chosen = 0; chosen < 2 ** n; chosen++) {
    const members = Array.from({ length: n }, (_, at) => at).filter((at) => chosen & (1 << at));
    if (members.length !== k) continue;
    all++;
    if (members.some((at) => at < passed)) some++;
  }
  return some / all;
}

test("pass@k is the share of all choices of k rollouts with one that passed", () => {
  for (let n = 1; n <= 7; n++)
    for (let passed = 0; passed <= n; passed++)
      for (let k = 1; k <= n; k++)
        assert.ok(Math.abs((passAtK({ n, passed }, k) ?? -1) - byCounting(n, passed, k)) < 1e-12, `${n} ${passed} ${k}`);
  assert.equal(passAtK({ n: 3, passed: 1 }, 4), null);
  assert.equal(passAtK({ n: 100_000, passed: 1 }, 50_000)?.toFixed(6), "0.500000");
});

test("the mean over tasks is no number where a task has too few rollouts, and its interval keeps a width where all passed", () => {
  const all = { n: 4, passed: 4 };
  assert.equal(meanPassAtK([all, { n: 2, passed: 1 }], 4), null);
  assert.equal(meanPassAtK([], 1), null);
  const found = meanPassAtK([all, all, all], 1);
  assert.equal(found?.value, 1);
  assert.ok(found.interval.low > 0.3 && found.interval.low < 0.6 && found.interval.high === 1);
  const one = meanPassAtK([{ n: 10, passed: 5 }], 1);
  assert.deepEqual(
    [one?.interval.low.toFixed(4), one?.interval.high.toFixed(4)],
    ["0.2366", "0.7634"],
    "Wilson's, as R's prop.test gives it",
  );
});

test("an evaluation may have any number of tasks", () => {
  const rollouts = Array.from({ length: 200_000 }, (_, at) => ({ task_id: String(at), reward: at % 2 }));
  const { tasks, pass_at_k } = statisticsOf(rollouts, { pass: 1, ks: null });
  assert.deepEqual([tasks, pass_at_k.map(({ k, value }) => [k, value])], [200_000, [[1, 0.5]]]);
});
