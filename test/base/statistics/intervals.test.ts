/** Intervals of mean rewards lie where rewards can lie. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { meanInterval } from "../../../base/statistics/intervals.ts";

test("rewards that are 0 or 1 have Wilson's interval, also where all are equal", () => {
  const { low = Number.NaN, high = Number.NaN } = meanInterval([0, 1, 1, 0, 1, 0, 0, 1, 1, 0]) ?? {};
  assert.deepEqual([low.toFixed(4), high.toFixed(4)], ["0.2366", "0.7634"]);
  const all = meanInterval([1, 1, 1]);
  assert.ok(all && all.low > 0.3 && all.low < 0.6 && all.high === 1);
});

test("the interval of any rewards between 0 and 1 lies between 0 and 1 and holds their mean", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 2, maxLength: 12 }), (rewards) => {
      const found = meanInterval(rewards);
      const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
      assert.ok(found === null || (found.low >= 0 && found.high <= 1 && found.low <= mean + 1e-9 && mean <= found.high + 1e-9));
    }),
  );
  assert.deepEqual(meanInterval([0, 0.999]), { low: 0, high: 1 });
});

test("rewards beyond 0 and 1 have Student's interval, and one reward has none", () => {
  const found = meanInterval([-1, 1]);
  assert.ok(found && found.low < -1 && found.high > 1);
  assert.equal(meanInterval([0.5]), null);
  assert.equal(meanInterval([0.5, 0.5]), null);
});
