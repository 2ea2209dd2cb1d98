import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../errors.ts";
import type { TreeFile } from "../../../files/file-tree.ts";
import { readRewards } from "../../../graders/harbor/reward-files.ts";

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
  assert.deepEqual([both.reward, both.file, both.disagree], [0.9, "reward.json", true]);
  assert.equal(readRewards(filesOf({ "reward.json": '{"reward": 1}', "reward.txt": "1.0" })).disagree, false);
});

for (const [title, files, said] of [
  ["several rewards of which none is the reward", { "reward.json": '{"quality": 1, "style": 0}' }, /no "reward" but quality, style/],
  [
    "a flood of names",
    { "reward.json": JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [at, 1]))) },
    /more than 200/,
  ],
  ["a name that every object has", { "reward.json": '{"constructor": 1, "toString": 1}' }, /no "reward" but constructor/],
] as const)
  test(`${title} is a grader's error that says what to do`, () => {
    const outcome = outcomeOf(files);
    assert.ok(outcome instanceof AlidadeError);
    assert.match(outcome.message, said);
  });
