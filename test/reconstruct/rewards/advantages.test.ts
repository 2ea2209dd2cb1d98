/** Against values worked out by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type AdvantageMethod, type BaselineEntry, groupAdvantages } from "../../../reconstruct/index.ts";

const member = (rollout_id: string, reward: number | null, over: Partial<BaselineEntry> = {}): BaselineEntry => ({
  rollout_id,
  reward,
  in_loss: true,
  in_baseline: true,
  ...over,
});

/** Mean 0.5; std of a sample sqrt((0.25 + 0.25 + 0.25 + 0.25) / 3) = sqrt(1 / 3) = 0.577350. */
const four = [member("a", 1), member("b", 0), member("c", 0), member("d", 1)];

function near(got: (number | null)[], wanted: (number | null)[]): void {
  assert.equal(got.length, wanted.length);
  for (const [at, value] of got.entries())
    assert.ok(value === wanted[at] || Math.abs((value ?? Number.NaN) - (wanted[at] ?? Number.NaN)) < 1e-5, `${got} is not ${wanted}`);
}

const byHand: [AdvantageMethod, number[]][] = [
  // 0.5 / (0.577350 + 1e-6)
  ["grpo", [0.866024, -0.866024, -0.866024, 0.866024]],
  ["dr_grpo", [0.5, -0.5, -0.5, 0.5]],
  // 1 - (0 + 0 + 1) / 3 and 0 - (1 + 0 + 1) / 3
  ["rloo", [2 / 3, -2 / 3, -2 / 3, 2 / 3]],
  // 0.666667 / (0.577350 + 1e-6)
  ["leave_one_out", [1.154699, -1.154699, -1.154699, 1.154699]],
];

for (const [method, wanted] of byHand)
  test(`${method} gives the values worked out by hand`, () => {
    const { advantages, baseline, zero_variance } = groupAdvantages(four, method);
    near(advantages, wanted);
    assert.deepEqual([baseline.entries, baseline.mean, zero_variance], [4, 0.5, false]);
  });

test("uneven rewards: 3, 1, 2 have mean 2 and std 1", () => {
  const three = [member("a", 3), member("b", 1), member("c", 2)];
  near(groupAdvantages(three, "grpo", 0).advantages, [1, -1, 0]);
  near(groupAdvantages(three, "rloo").advantages, [1.5, -1.5, 0]);
  near(groupAdvantages(three, "leave_one_out", 0).advantages, [1.5, -1.5, 0]);
});

for (const [method, wanted] of byHand)
  test(`${method}: a rollout that forked into three rows is one entry of the baseline, and each row gets its advantage`, () => {
    const forked = [four[0]!, four[0]!, four[0]!, ...four.slice(1)];
    const { advantages, baseline } = groupAdvantages(forked, method);
    assert.equal(baseline.entries, 4);
    near(advantages, [wanted[0]!, wanted[0]!, wanted[0]!, ...wanted.slice(1)]);
  });

test("a group of equal rewards is reported, and its advantages are exactly 0, whatever the rounding of their mean", () => {
  const equal = [0, 1, 2].map((index) => member(String(index), 0.1));
  for (const [method] of byHand) {
    const { advantages, zero_variance } = groupAdvantages(equal, method);
    assert.deepEqual([advantages, zero_variance], [[0, 0, 0], true]);
  }
});

test("a null reward is in no baseline and gets no advantage, and never counts as 0", () => {
  const { advantages, reasons, baseline } = groupAdvantages([...four, member("e", null)], "dr_grpo");
  assert.deepEqual([baseline.entries, baseline.mean, advantages.at(-1), reasons.at(-1)], [4, 0.5, null, "no_reward"]);
});

test("in_loss and in_baseline are two words: one may teach without being compared with, and the other way round", () => {
  // Baseline b, c, d: mean 1/3. `a` teaches only; `d` is compared with only.
  const members = [member("a", 1, { in_baseline: false }), member("b", 0), member("c", 0), member("d", 1, { in_loss: false })];
  const plain = groupAdvantages(members, "dr_grpo");
  near(plain.advantages, [2 / 3, -1 / 3, -1 / 3, null]);
  assert.deepEqual(plain.reasons, [null, null, null, "not_in_loss"]);
  // For `a` the others are the whole baseline; for `b` they are c and d.
  near(groupAdvantages(members, "rloo").advantages, [2 / 3, -1 / 2, -1 / 2, null]);
});

test("a rollout that is compared with itself alone has no advantage", () => {
  assert.deepEqual(groupAdvantages([member("a", 1)], "grpo").reasons, ["no_baseline"]);
  assert.deepEqual(groupAdvantages([member("a", 1, { in_baseline: false })], "rloo").reasons, ["no_baseline"]);
  assert.deepEqual(groupAdvantages([], "rloo").advantages, []);
});

test("equal entries are no measure of how far away another reward is: unscaled it has an advantage, scaled none", () => {
  const members = [member("a", 0), member("b", 0), member("c", 1, { in_baseline: false })];
  near(groupAdvantages(members, "dr_grpo").advantages, [0, 0, 1]);
  near(groupAdvantages(members, "grpo").advantages, [0, 0, null]);
  assert.deepEqual(groupAdvantages(members, "grpo").reasons, [null, null, "no_baseline"]);
});

test("rewards between which no number can stand are no baseline, and never NaN or Infinity", () => {
  const huge = [member("a", 1e308), member("b", 1e308), member("c", -1e308)];
  const far = [member("a", 1e200), member("b", 0)];
  for (const method of ["grpo", "dr_grpo", "rloo", "leave_one_out"] as const)
    assert.deepEqual(groupAdvantages(huge, method).reasons, ["no_baseline", "no_baseline", "no_baseline"], method);
  assert.deepEqual(groupAdvantages(far, "grpo").reasons, ["no_baseline", "no_baseline"], "the square of their distance");
  assert.deepEqual(groupAdvantages(far, "rloo").advantages, [1e200, -1e200]);
});

test("rows of one rollout that disagree about its reward are refused", () => {
  assert.throws(() => groupAdvantages([member("a", 1), member("a", 0)], "grpo"), /Rollout a has rows of reward 1 and 0/);
});
