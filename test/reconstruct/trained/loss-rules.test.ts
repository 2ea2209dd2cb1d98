/** What a trainer may decide anew about rollouts that were cut off, and about kinds of call. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Purpose } from "../../../base/schema/session-spec.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import {
  parseCutOffRules,
  reconstruct,
  type SelectOptions,
  selectRows,
  type TrajectoryFacts,
  verifyRows,
} from "../../../reconstruct/index.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const slow = "cut_by_the_clock_while_the_engine_was_slow";
const trained: TrajectoryFacts = { status: "cut", stop_reason: "budget_spent", reward: 0.5 };
const masked: TrajectoryFacts = { ...trained, stop_reason: "harness_timeout", in_loss: false, mask_reason: slow };

function rollout(facts: TrajectoryFacts, purpose: (typeof Purpose.options)[number] = "train"): Trajectory {
  const log = new LogBuilder({ purpose });
  const says = assistant("one two");
  const a = log.call({ messages: [user("u")], says });
  log.call({ messages: [user("u"), says, user("v")], parent: a, logprobs: [-1, null] });
  return reconstruct(log.entries, facts);
}

/** Trained tokens, reward, and whether it counts in loss and baseline. */
function under(trajectory: Trajectory, ...rules: string[]): [number, number | null, boolean, boolean] {
  const { rows, tokens, standing } = selectRows(trajectory, { cutOff: parseCutOffRules(rules) });
  assert.deepEqual(verifyRows(trajectory, rows), []);
  for (const row of rows) assert.deepEqual([row.reward, row.in_baseline], [standing.reward, standing.in_baseline]);
  return [tokens.trained, standing.reward, standing.in_loss, standing.in_baseline];
}

test("a rollout cut by its own budget is trained with its reward unless a rule says otherwise", () => {
  const cut = rollout(trained);
  assert.deepEqual(under(cut), [3, 0.5, true, true]);
  assert.deepEqual(under(cut, "harness_timeout=mask"), [3, 0.5, true, true]);
  assert.deepEqual(under(cut, "budget_spent=mask"), [0, 0.5, false, false]);
  assert.deepEqual(under(cut, "budget_spent=baseline"), [0, 0.5, false, true]);
  assert.deepEqual(under(cut, "budget_spent=penalise:0.75"), [3, -0.25, true, true]);
});

test("one masked for a slow engine can be taken after all, but not what of it has no logprobs", () => {
  const cut = rollout(masked);
  assert.deepEqual(under(cut), [0, 0.5, false, false]);
  assert.deepEqual(under(cut, `${slow}=train`), [3, 0.5, true, true]);
  const { tokens } = selectRows(cut, { cutOff: { [slow]: { action: "train" } } });
  assert.deepEqual(tokens.excluded, { no_logprob: 2 });
});

test("of work that was not measured one option says what it is worth, whatever kept it from being measured", () => {
  const none: TrajectoryFacts = { status: "failed", stop_reason: "exited", reward: null, in_loss: false };
  const worth = (mask_reason: string, unmeasured: "null" | "zero", purpose: "train" | "eval" = "train"): unknown[] => {
    const { tokens, standing } = selectRows(rollout({ ...none, mask_reason }, purpose), { unmeasured });
    return [tokens.trained, standing.reward, standing.in_loss, standing.in_baseline];
  };
  for (const reason of ["grader_timeout", "grader_error", "engine_error", "sandbox_died", "internal"]) {
    assert.deepEqual(worth(reason, "null"), [0, null, false, false], reason);
    assert.deepEqual(worth(reason, "zero"), [3, 0, true, true], reason);
    assert.deepEqual(worth(reason, "zero", "eval"), [0, null, false, false], reason);
  }
  for (const reason of ["interrupted", "no_call_seen"]) assert.deepEqual(worth(reason, "zero"), [0, null, false, false], reason);
  assert.deepEqual(
    selectRows(rollout({ ...none, status: "cancelled", mask_reason: "cancelled" }), { unmeasured: "zero" }).standing.reward,
    null,
  );
  assert.throws(() => parseCutOffRules(["grader_timeout=zero"]), { code: "config_invalid", message: /use --unmeasured/ });
});

test("no rule trains what failed, what was not graded, or an evaluation", () => {
  for (const action of ["train", "penalise:1"]) {
    const rules = [`budget_spent=${action}`, `engine_error=${action}`];
    assert.equal(under(rollout({ ...trained, status: "failed", stop_reason: "engine_error", in_loss: false }), ...rules)[0], 0);
    assert.deepEqual(under(rollout({ ...trained, reward: null, in_loss: false }), ...rules), [0, null, false, false]);
    assert.deepEqual(under(rollout(trained, "eval"), ...rules), [0, 0.5, true, true]);
  }
});

test("kinds of call can be left out, and are counted under that reason", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("u")] });
  log.call({ messages: [user("sum up")], request_class: "compaction" });
  const options: Partial<SelectOptions> = { leaveOut: ["compaction"] };
  const { tokens, left_out } = selectRows(reconstruct(log.entries), options);
  assert.deepEqual([tokens.trained, tokens.excluded, left_out], [2, { left_out_class: 2 }, { left_out_class: 1 }]);
});

test("imitation takes calls without logprobs and calls under a grammar, and still nothing that never arrived", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("a")], logprobs: null });
  log.call({ messages: [user("b")], logprobs: [-1, -2], grammar: true });
  log.call({ messages: [user("c")], delivery: "cut" });
  const trajectory = reconstruct(log.entries);
  assert.equal(selectRows(trajectory).tokens.trained, 0);
  const { tokens } = selectRows(trajectory, { objective: "sft" });
  assert.deepEqual([tokens.trained, tokens.excluded], [4, { undelivered: 2 }]);
});

test("a rule that is none is refused with the words that there are", () => {
  for (const word of ["budget_spent", "budget_spent=skip", "=mask", "budget_spent=penalise", "budget_spent=penalise:-1", "a=b=c"])
    assert.throws(() => parseCutOffRules([word]), /write CAUSE=train, CAUSE=mask, CAUSE=baseline, CAUSE=zero or CAUSE=penalise:NUMBER/);
});

test("tokens of a policy older than the trainer's bound, or of an unknown step, are masked, and imitation knows no bound", () => {
  const log = new LogBuilder();
  const first = log.call({
    messages: [user("u")],
    says: assistant("one two"),
    policy_end: { version: "v2", step: 2 },
    tokens_before_hold: 1,
  });
  const seen = [user("u"), assistant("one two"), user("v")];
  log.call({ messages: seen, says: assistant("three"), parent: first, policy: { version: "v2", step: 2 } });
  log.call({ messages: [user("w")], says: assistant("four"), policy: { version: "v3", step: null } });
  const trajectory = reconstruct(log.entries, { status: "graded", reward: 1 });
  const excluded = (options: Partial<SelectOptions>): Record<string, number> => selectRows(trajectory, options).tokens.excluded;
  const unattributed_policy = 2;
  assert.deepEqual(excluded({}), { unattributed_policy });
  assert.deepEqual(excluded({ oldestStep: 1 }), { unattributed_policy, no_policy_step: 2 });
  assert.deepEqual(excluded({ oldestStep: 2 }), { unattributed_policy, stale_policy: 1, no_policy_step: 2 });
  assert.deepEqual(excluded({ oldestStep: 3 }), { unattributed_policy, stale_policy: 3, no_policy_step: 2 });
  assert.deepEqual(excluded({ oldestStep: 3, objective: "sft" }), {});
});
