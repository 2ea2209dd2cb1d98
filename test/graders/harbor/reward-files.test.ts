import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { TreeFile } from "../../../base/files/file-tree.ts";
import { readRewards } from "../../../graders/harbor/reward-files.ts";
import { chosenReward, parseRewardRule } from "../../../graders/harbor/reward-rule.ts";

const filesOf = (contents: Record<string, string>): TreeFile[] =>
  Object.entries(contents).map(([path, text]) => ({ path, content: Buffer.from(text), mode: 0o644 }));

/** What Harbor 0.24.0 gave for the same files, recorded; null: it gave none, with the name of its error. */
const recorded: [title: string, files: Record<string, string>, rewards: Record<string, number> | string][] = [
  ["json and txt disagree", { "reward.json": '{"reward": 1}', "reward.txt": "0" }, { reward: 1 }],
  ["json with several keys", { "reward.json": '{"reward": 0.25, "passed": 1, "perfect": 0}' }, { reward: 0.25, passed: 1, perfect: 0 }],
  ["json without reward beside txt", { "reward.json": '{"quality": 0.9}', "reward.txt": "1" }, { quality: 0.9 }],
  ["true", { "reward.json": '{"reward": true}' }, { reward: 1 }],
  ["a bare number in json", { "reward.json": "1" }, "ValidationError"],
  ["a list", { "reward.json": "[1]" }, "VerifierOutputParseError"],
  ["a nested object", { "reward.json": '{"reward": {"a": 1}}' }, "VerifierOutputParseError"],
  ["a string", { "reward.json": '{"reward": "1"}' }, "VerifierOutputParseError"],
  ["NaN in json", { "reward.json": '{"reward": NaN}' }, "VerifierOutputParseError"],
  ["a number that is no float", { "reward.json": '{"reward": 1e999}' }, "VerifierOutputParseError"],
  ["txt nan", { "reward.txt": "nan" }, "VerifierOutputParseError"],
  ["txt abc", { "reward.txt": "abc" }, "VerifierOutputParseError"],
  ["txt empty", { "reward.txt": "" }, "RewardFileEmptyError"],
  ["no file", {}, "RewardFileNotFoundError"],
  ["a number below 0, which is the task's to allow", { "reward.txt": " -3.5e1 " }, { reward: -35 }],
  ["txt with spaces, a sign and an exponent", { "reward.txt": " +5e-1 \n" }, { reward: 0.5 }],
  ["rewards.json, which is another name", { "rewards.json": '{"reward": 1}' }, "RewardFileNotFoundError"],
];

function outcomeOf(files: Record<string, string>): Record<string, number> | AlidadeError {
  try {
    return Object.fromEntries(readRewards(filesOf(files)).values);
  } catch (error) {
    assert.ok(error instanceof AlidadeError && error.code === "grader_error", String(error));
    return error;
  }
}

for (const [title, files, rewards] of recorded)
  test(`reward files are read as Harbor reads them: ${title}`, () => {
    const outcome = outcomeOf(files);
    if (typeof rewards === "string")
      assert.ok(outcome instanceof AlidadeError, `${rewards} of Harbor's, and here ${JSON.stringify(outcome)}`);
    else assert.deepEqual(outcome, rewards);
  });

test("two files that disagree are told, and the one number that there is counts as the reward", () => {
  const both = readRewards(filesOf({ "reward.json": '{"quality": 0.9}', "reward.txt": "1" }));
  const { reward } = chosenReward(both.values, null);
  assert.deepEqual([reward, both.file, both.disagree(reward)], [0.9, "reward.json", true]);
  assert.equal(readRewards(filesOf({ "reward.json": '{"reward": 1}', "reward.txt": "1.0" })).disagree(1), false);
});

const several = new Map([
  ["quality", 0.5],
  ["style", 0.25],
  ["constructor", 0],
]);

for (const [rule, reward, formula] of [
  ["mean", 0.25, "mean(quality, style, constructor)"],
  ["min", 0, "min(quality, style, constructor)"],
  [{ key: "style" }, 0.25, null],
  [{ weights: { quality: 3, style: 1 } }, 0.4375, "(3 × quality + 1 × style) / 4"],
] as const)
  test(`of several numbers ${JSON.stringify(rule)} gives ${reward}`, () => {
    assert.deepEqual(chosenReward(several, rule), { reward, formula });
  });

test("mean and min leave a number alone that is called reward, and a key or weights decide beside it", () => {
  const named = new Map([...several, ["reward", 1]]);
  for (const rule of [null, "mean", "min"] as const) assert.equal(chosenReward(named, rule).reward, 1);
  assert.equal(chosenReward(named, { key: "style" }).reward, 0.25);
  assert.equal(chosenReward(named, { weights: { quality: 1, reward: 1 } }).reward, 0.75);
});

for (const rule of [null, { key: "toString" }, { weights: { quality: 1, absent: 1 } }] as const)
  test(`a reward that is not there is none, for ${JSON.stringify(rule)}`, () => {
    assert.throws(() => chosenReward(several, rule), {
      code: "grader_error",
      message: /has no "(reward|toString|absent)" but quality, style, constructor/,
    });
  });

test("a rule is written on a command line as mean, min, a name or names with weights", () => {
  assert.deepEqual(["mean", "min", "quality", "a=2,b=0.5"].map(parseRewardRule), [
    "mean",
    "min",
    { key: "quality" },
    { weights: { a: 2, b: 0.5 } },
  ]);
  for (const text of ["", "a=", "a=0", "=1", "a=2,b"]) assert.throws(() => parseRewardRule(text), text);
});

for (const [title, files, said] of [
  [
    "a flood of names",
    { "reward.json": JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [at, 1]))) },
    /more than 200/,
  ],
] as const)
  test(`${title} is a grader's error that says what to do`, () => {
    const outcome = outcomeOf(files);
    assert.ok(outcome instanceof AlidadeError);
    assert.match(outcome.message, said);
  });
