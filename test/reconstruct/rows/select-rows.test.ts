/** Limits, owners, place holders, and the forms in which trainers line tokens up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { dummyRow, fullLength, perToken, reconstruct, responseOnly, selectRows, shifted, turnsOf } from "../../../reconstruct/index.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";

/** Two turns: a prompt of 4, a sample of 3, a context of 4, a sample of 2; two policies. */
function twoTurns(): Trajectory {
  const log = new LogBuilder();
  const says = assistant("one two");
  const a = log.call({ messages: [user("u")], says, logprobs: [-1, -2, -3] });
  log.call({ messages: [user("u"), says, user("v")], parent: a, logprobs: [-4, -5], policy: { version: "v2", step: 2 } });
  return reconstruct(log.entries, { reward: 1 });
}

const [row] = [...selectRows(twoTurns()).rows];
assert.ok(row);

test("response only: mask and logprobs belong to the response's tokens, and are 0 on what was not sampled", () => {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  assert.deepEqual([prompt_ids.length, response_ids.length], [4, 9]);
  assert.deepEqual([...prompt_ids, ...response_ids], row.token_ids);
  assert.deepEqual(mask, [1, 1, 1, 0, 0, 0, 0, 1, 1]);
  assert.deepEqual(logprobs, [-1, -2, -3, 0, 0, 0, 0, -4, -5]);
});

test("full length: entry i is about token i, with the filler of the trainer's choice", () => {
  const { mask, logprobs } = fullLength(row, { filler: Number.NaN });
  assert.deepEqual(mask, [0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1]);
  assert.deepEqual(logprobs.slice(4, 8), [-1, -2, -3, Number.NaN]);
});

test("shifted: entry i is about the token after input i", () => {
  const { input_ids, target_ids, mask, logprobs } = shifted(row);
  assert.deepEqual([input_ids.length, target_ids.length, mask.length, logprobs.length], [12, 12, 12, 12]);
  assert.equal(target_ids[3], row.token_ids[4]);
  assert.deepEqual(mask.slice(2, 7), [0, 1, 1, 1, 0]);
  assert.deepEqual(logprobs.slice(2, 7), [0, -1, -2, -3, 0]);
});

test("turn by turn: each with all that stood before it, and its policy", () => {
  assert.deepEqual(
    turnsOf(row).map((turn) => [
      turn.prompt_ids.length,
      turn.token_ids.length,
      turn.logprobs,
      turn.mask,
      turn.policy_version,
      turn.policy_step,
    ]),
    [
      [4, 3, [-1, -2, -3], [1, 1, 1], "v1", 1],
      [11, 2, [-4, -5], [1, 1], "v2", 2],
    ],
  );
  assert.deepEqual(
    perToken(row, (segment) => segment.policy_step),
    [...Array(4).fill(null), 1, 1, 1, ...Array(4).fill(null), 2, 2],
  );
});

test("a step is that of the turn's own call, where one name was kept for several steps", () => {
  const log = new LogBuilder();
  const says = assistant("a");
  const first = log.call({ messages: [user("u")], says, policy: { version: "lora", step: 1 } });
  log.call({ messages: [user("u"), says, user("v")], parent: first, policy: { version: "lora", step: 2 } });
  const [both] = selectRows(reconstruct(log.entries, { reward: 1 })).rows;
  assert.ok(both);
  assert.deepEqual(
    turnsOf(both).map((turn) => [turn.policy_version, turn.policy_step]),
    [
      ["lora", 1],
      ["lora", 2],
    ],
  );
});

test("a trained token without a logprob is refused, never filled", () => {
  const broken = { ...row, logprobs: row.logprobs.with(5, null) };
  for (const align of [fullLength, responseOnly, shifted]) assert.throws(() => align(broken), /Token 5 of row 0 .* has no logprob/);
});

test("a packed tree is refused by forms in which the token before is the one on the left", () => {
  const [packed] = selectRows(twoTurns(), { strategy: "tree" }).rows;
  assert.ok(packed);
  for (const align of [responseOnly, shifted, turnsOf]) assert.throws(() => align(packed), /no tree attention/);
});

test("a row longer than the limit keeps its exact beginning up to the end of a call", () => {
  const whole = row.token_ids.length;
  for (const [limit, kept] of [
    [whole, whole],
    [whole - 1, 7],
    [7, 7],
  ] as const) {
    const [cut] = selectRows(twoTurns(), { maxTokens: limit }).rows;
    assert.deepEqual(cut?.token_ids, row.token_ids.slice(0, kept));
    assert.equal(cut?.cut, kept < whole);
  }
});

test("what is not trained makes no row too long: a tail that never arrived, or another agent's", () => {
  for (const over of [{ delivery: "cut" }, { agent: "helper", request_class: "sub_agent" }] as const) {
    const log = new LogBuilder();
    const says = assistant("one two");
    const a = log.call({ messages: [user("u")], says });
    log.call({ messages: [user("u"), says, user("v")], parent: a, ...over });
    const [only, ...more] = selectRows(reconstruct(log.entries), { strategy: "main-agent", maxTokens: 7 }).rows;
    assert.deepEqual([only?.token_ids.length, only?.cut, more], [7, false, []]);
  }
});

test("where not even the first turn fits, a dummy row of the prompt's beginning holds the rollout's place", () => {
  for (const [limit, kept] of [
    [6, 4],
    [3, 3],
  ] as const) {
    const { rows, tokens, left_out } = selectRows(twoTurns(), { maxTokens: limit });
    const [dummy, ...more] = rows;
    assert.deepEqual(more, []);
    assert.deepEqual(dummy?.token_ids, row.token_ids.slice(0, kept));
    assert.deepEqual([dummy?.dummy, dummy?.loss_mask.includes(1), dummy?.weight, dummy?.reward], [true, false, 0, 1]);
    assert.deepEqual([tokens.trained, tokens.excluded, left_out], [0, { over_length: 5 }, { over_length: 2 }]);
  }
});

test("a rollout without a token gives an empty place holder: padding is the format's", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("u")], prompt: null });
  const empty = dummyRow(reconstruct(log.entries));
  assert.deepEqual([empty.token_ids, empty.dummy, empty.prompt_length, empty.reward], [[], true, 0, null]);
});

test("a packed tree larger than the limit is several rows, each with its own copy of what its paths share", () => {
  const log = new LogBuilder();
  const says = assistant("one two");
  const a = log.call({ messages: [user("u")], says });
  for (const words of ["left", "right", "straight on"]) log.call({ messages: [user("u"), says, user(words)], parent: a });
  const trajectory = reconstruct(log.entries);
  const all = selectRows(trajectory, { strategy: "tree" });
  assert.equal(all.row_count, 1);
  const [packed] = all.rows;
  const { rows, row_count, tokens } = selectRows(trajectory, { strategy: "tree", maxTokens: (packed?.token_ids.length ?? 0) - 1 });
  assert.equal(row_count, 2);
  assert.equal(tokens.trained, all.tokens.trained);
  const [, second] = rows;
  assert.equal(second?.segments.find((segment) => segment.kind === "sampled")?.reason, "other_row");
  assert.deepEqual(second?.token_ids.slice(0, 7), packed?.token_ids.slice(0, 7));
});
