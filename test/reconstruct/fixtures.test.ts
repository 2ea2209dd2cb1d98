/** Single questions about trajectories, each in its smallest session; the named cases are in `named-cases.ts`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { reconstruct, selectRows, verifyRows, verifyTrajectory } from "../../reconstruct/index.ts";
import { assistant, LogBuilder, recognised, system, thinking, toolCall, toolResult, user } from "../fakes/records/log-builder.ts";
import { drawEdges, drawTree } from "./draw-tree.ts";
import { rebuilt, turn } from "./rebuilt.ts";

const start = [system("be good"), user("fix it")];

test("parents are found by tokens alone where nothing was recorded", () => {
  const log = new LogBuilder();
  const says = assistant("hello");
  log.call({ messages: start, says });
  log.call({ messages: [...start, says, user("again")] });
  assert.deepEqual(drawEdges(rebuilt(log)), ["a root", "b exact a"]);
});

test("a retry that samples the same ids is an event of its own, and the continuation follows the delivered one", () => {
  const log = new LogBuilder();
  const says = assistant("same words");
  log.call({ messages: start, says, delivery: "cut" });
  log.call({ messages: start, says });
  log.call({ messages: [...start, says, user("go on")] });
  const trajectory = rebuilt(log);
  assert.deepEqual(drawEdges(trajectory), ["a root", "b root", "c exact b"]);
  assert.deepEqual(drawTree(trajectory).slice(0, 4), ["a prompt 9", "  a sampled 3 undelivered", "  b sampled 3 +", "    c observation 5"]);
});

test("parallel twins without any identity are continued one each", () => {
  const log = new LogBuilder();
  const says = assistant("same words");
  log.call({ messages: start, says, begin: 2000, finish: 2100 });
  log.call({ messages: start, says, begin: 2001, finish: 2101 });
  const next = [...start, says, user("go on")];
  log.call({ messages: next, begin: 2200, finish: 2300 });
  log.call({ messages: next, begin: 2201, finish: 2301 });
  const parents = rebuilt(log).calls.map((call) => call.parent_call_id);
  assert.equal(new Set(parents.slice(2)).size, 2);
});

test("reasoning that only the template drops is told from the decoded texts", () => {
  const log = new LogBuilder();
  const says = assistant(thinking("a long passage of reasoning"), "answer");
  const a = log.call({ messages: start, says });
  const next = [...start, says, user("next")];
  const prompt = log.prompt([...start, assistant("answer"), user("next")]);
  log.call({
    messages: next,
    prompt,
    parent: a,
    decoded: { parent_call_id: a, same_text: false, parent_text: "<think> a long passage of reasoning", child_text: "answer" },
  });
  assert.deepEqual(drawEdges(rebuilt(log)), ["a root", "b diverged a reasoning_dropped"]);
});

test("without a decoder, other tokens of an unchanged conversation are unknown", () => {
  const log = new LogBuilder();
  const says = assistant("fishing");
  const a = log.call({ messages: start, says, sampled: [901, 902, 2] });
  log.call({ messages: [...start, says, user("more")], parent: a });
  assert.deepEqual(drawEdges(rebuilt(log)), ["a root", "b unknown a unknown"]);
});

test("title calls are in the tree, not trained, and in no row", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("title please")], request_class: "title" });
  log.call({ messages: start });
  const trajectory = rebuilt(log);
  assert.deepEqual(trajectory.fidelity.excluded, { auxiliary: 2 });
  assert.equal(trajectory.traces.length, 2);
  const flat = selectRows(trajectory);
  assert.equal(flat.row_count, 1);
  assert.deepEqual(flat.left_out, { auxiliary: 1 });
});

test("a call that failed in the middle keeps its partial ids, not trained", () => {
  const log = new LogBuilder();
  log.call({
    messages: start,
    sampled: [50, 51],
    finish_reason: "error",
    error: { code: "engine_error", message: "gone", status: 500 },
    delivery: "error",
  });
  log.call({ messages: start });
  const trajectory = rebuilt(log);
  assert.deepEqual(drawTree(trajectory), ["a prompt 9", "  a sampled 2 failed", "  b sampled 2 +"]);
  assert.deepEqual(trajectory.fidelity.outcomes, { failed: 1, delivered: 1 });
});

test("a text-only engine gives calls with parents and no nodes", () => {
  const log = new LogBuilder();
  const says = assistant("hello");
  log.call({ messages: start, says, prompt: null });
  log.call({ messages: [...start, says, user("again")], prompt: null });
  const trajectory = rebuilt(log);
  assert.deepEqual(drawEdges(trajectory), ["a root", "b unknown a unknown"]);
  assert.deepEqual(trajectory.nodes, []);
  assert.deepEqual(trajectory.fidelity.excluded, { no_token_ids: 10 });
  assert.equal(trajectory.fidelity.row_inflation, null);
});

test("one missing logprob excludes its whole call, and no other", () => {
  const log = new LogBuilder();
  const says = assistant("one two");
  const a = log.call({ messages: start, says, logprobs: [-1, null, -1] });
  log.call({ messages: [...start, says, user("again")], parent: a });
  const trajectory = rebuilt(log);
  assert.deepEqual(drawTree(trajectory), ["a prompt 9", "  a sampled 3 no_logprob", "    b observation 4", "      b sampled 2 +"]);
  assert.deepEqual(trajectory.nodes[1]?.logprobs, [-1, null, -1]);
});

test("logprobs that do not fit the ids are not passed on", () => {
  const log = new LogBuilder();
  log.call({ messages: start, says: assistant("one two"), logprobs: [-1, -1] });
  const trajectory = rebuilt(log);
  assert.deepEqual([trajectory.nodes[1]?.reason, trajectory.nodes[1]?.logprobs], ["misaligned", null]);
});

test("tokens that a grammar forced are marked and not trained; without a grammar a logprob of 0 is a choice", () => {
  const log = new LogBuilder();
  log.call({ messages: start, says: assistant("one two"), logprobs: [0, -1, 0], grammar: true });
  log.call({ messages: [user("free")], says: assistant("one two"), logprobs: [0, -1, 0] });
  const trajectory = rebuilt(log);
  const sampled = trajectory.nodes.filter((node) => node.kind === "sampled");
  assert.deepEqual(
    sampled.map((node) => node.forced),
    [[true, false, true], undefined],
  );
  assert.deepEqual(trajectory.fidelity.excluded, { forced: 2, grammar: 1 });
  const strict = selectRows(trajectory);
  assert.deepEqual([strict.row_count, strict.left_out], [1, { grammar: 1 }]);
  assert.deepEqual(verifyRows(trajectory, strict.rows), []);
});

test("a killed process: what was not answered is undelivered, what never finished has failed, what was used was delivered", () => {
  const log = new LogBuilder();
  const says = assistant(toolCall("1", "{}"));
  const a = log.call({ messages: start, says, delivery: "none" });
  log.call({
    messages: turn(start, says, toolResult("1", "result")),
    parent: a,
    restored: [recognised(a, 2)],
    says: assistant("and"),
    delivery: "none",
  });
  log.call({ messages: start, delivery: "unfinished" });
  const trajectory = rebuilt(log);
  assert.deepEqual(
    trajectory.calls.map((call) => call.outcome),
    ["delivered", "undelivered", "failed"],
  );
  assert.equal(trajectory.calls[2]?.prompt_length, null);
});

test("a replayed turn was delivered", () => {
  const log = new LogBuilder();
  const a = log.call({ messages: start, delivery: "cut" });
  log.entries.push({ type: "replayed", time: 9999, call_id: a, delivery: "complete" });
  assert.equal(rebuilt(log).calls[0]?.outcome, "delivered");
});

test("a call that goes on from one that the log does not hold is lost with that reason, and is no call with an empty input", () => {
  const log = new LogBuilder();
  const says = assistant("hello");
  const a = log.call({ messages: start, says });
  log.call({ messages: [...start, says, user("again")] });
  const damaged = log.entries.filter((entry) => !("call_id" in entry && entry.call_id === a));
  const [lost, ...more] = reconstruct(damaged).fidelity.damaged;
  assert.deepEqual([reconstruct(damaged).calls, more, lost?.sampled_tokens], [[], [], 2]);
  assert.match(lost?.reason ?? "", new RegExp(`goes on from \\d+ entries of call ${a}, which the log does not hold`));
  const unfinished = reconstruct(log.entries.filter((entry) => !(entry.type === "call_finished" && entry.call_id === a)));
  assert.deepEqual(
    unfinished.calls.map((call) => call.call_id),
    [a],
    "what a call said is part of its list",
  );
});

test("weights that change during a call leave it unattributed; between calls they do not matter", () => {
  const log = new LogBuilder();
  log.call({ messages: start, policy_end: { version: "v2", step: 2 } });
  log.call({ messages: [user("next")], policy: { version: "v2", step: 2 } });
  const trajectory = rebuilt(log);
  assert.deepEqual(trajectory.fidelity.excluded, { unattributed_policy: 2 });
  assert.deepEqual(trajectory.fidelity.policy_versions, ["v1", "v2"]);
  assert.equal(trajectory.nodes.at(-1)?.policy_version, "v2");
});

test("a new step under the same name is another policy, and so is a change there and back", () => {
  for (const change of [{ policy_end: { version: "v1", step: 2 } }, { policy_changed: true as const }]) {
    const log = new LogBuilder();
    log.call({ messages: start, ...change });
    const trajectory = rebuilt(log);
    assert.deepEqual(trajectory.fidelity.excluded, { unattributed_policy: 2 });
    assert.equal(trajectory.nodes.at(-1)?.policy_version, null);
  }
});

test("tokens that came before a hold are of the policy at the start, also where the next one has its name", () => {
  const log = new LogBuilder();
  const says = assistant("one two three four");
  log.call({ messages: start, says, policy_end: { version: "v1", step: 2 }, policy_changed: true, tokens_before_hold: 2 });
  const { nodes, fidelity } = rebuilt(log);
  const [early, late] = nodes.filter((node) => node.kind === "sampled");
  assert.deepEqual([early?.policy_version, early?.token_ids.length, early?.reason], ["v1", 2, null]);
  assert.deepEqual([late?.policy_version, late?.token_ids.length, late?.reason], [null, 3, "unattributed_policy"]);
  assert.deepEqual([fidelity.trainable_tokens, fidelity.sampled_tokens], [2, 5]);
  const [row] = selectRows(rebuilt(log)).rows;
  assert.deepEqual([row?.policy_version, row?.policy_step, row?.trained_tokens], ["v1", 1, 2]);
  const masked = reconstruct(log.entries, { in_loss: false }).nodes.filter((node) => node.kind === "sampled");
  assert.deepEqual(
    masked.map(({ reason }) => reason),
    ["masked_rollout", "unattributed_policy"],
  );
});

test("where the engine tells which weights sampled which tokens, each node is by one version and all are trained", () => {
  const log = new LogBuilder();
  const says = assistant("one two three four");
  const weights = [
    { version: "v1", start: 0, end: 2 },
    { version: "v2", start: 2, end: null },
  ];
  log.call({ messages: start, says, policy_end: { version: "v2", step: 2 }, weights });
  log.call({ messages: [...start, says, user("next")], policy: { version: "v2", step: 2 } });
  const trajectory = rebuilt(log);
  const sampled = trajectory.nodes.filter((node) => node.kind === "sampled");
  assert.deepEqual(
    sampled.map((node) => [node.policy_version, node.token_ids.length, node.logprobs?.length, node.trainable]),
    [
      ["v1", 2, 2, true],
      ["v2", 3, 3, true],
      ["v2", 2, 2, true],
    ],
  );
  assert.equal(trajectory.calls[1]?.match, "exact");
  assert.deepEqual(trajectory.calls[0]?.policy.spans, weights);
  const report = verifyTrajectory(trajectory, [...log.exchanges.values()]);
  assert.deepEqual(report.mismatches, []);
});

test("spans that leave tokens out, run backwards, repeat a name or have names of no policy of the call attribute nothing", () => {
  const one = { version: "v1", start: 0, end: 2 };
  for (const weights of [
    [one, { version: "v2", start: 3, end: null }],
    [
      { ...one, start: 1 },
      { version: "v2", start: 2, end: null },
    ],
    [one, { version: "v1", start: 2, end: null }],
    [one, { version: "seven", start: 2, end: null }],
    [
      { ...one, version: "default" },
      { version: "v2", start: 2, end: null },
    ],
    [one, { version: "v2", start: 2, end: 4 }],
    [one, { version: "v2", start: 2, end: 2 }],
    [one, { version: "v3", start: 2, end: 1 }, { version: "v2", start: 1, end: null }],
  ]) {
    const log = new LogBuilder();
    log.call({ messages: start, says: assistant("one two three four"), policy_end: { version: "v2", step: 2 }, weights });
    assert.deepEqual(rebuilt(log).fidelity.excluded, { unattributed_policy: 5 });
  }
});

test("one name for the whole of a call is the engine's word at its end only: it attributes nothing", () => {
  const log = new LogBuilder();
  log.call({ messages: start, policy_end: { version: "v2", step: 2 }, weights: [{ version: "v2", start: 0, end: 2 }] });
  assert.deepEqual(rebuilt(log).fidelity.excluded, { unattributed_policy: 2 });
});

test("a session that went on under another tokenizer has a root for each: equal ids are other words", () => {
  const log = new LogBuilder();
  const says = assistant("hello");
  log.call({ messages: start, says, tokenizer: "t1" });
  log.call({ messages: [...start, says, user("next")], tokenizer: "t2" });
  log.call({ messages: [...start, says, user("next"), assistant("ok"), user("last")], tokenizer: "t2" });
  const trajectory = rebuilt(log);
  assert.deepEqual(
    trajectory.calls.map((call) => [call.match, call.cause]),
    [
      ["root", null],
      ["diverged", "other_tokenizer"],
      ["exact", null],
    ],
  );
  assert.equal(trajectory.nodes.filter((node) => node.parent_id === null).length, 2);
  assert.deepEqual(verifyTrajectory(trajectory, [...log.exchanges.values()]).mismatches, []);
});

test("evaluation and masked rollouts are recorded and not trained; live sessions are trained unless masked", () => {
  for (const [purpose, facts, reason] of [
    ["eval", {}, "not_for_training"],
    ["train", { in_loss: false }, "masked_rollout"],
    ["live", { in_loss: false }, "masked_rollout"],
    ["live", {}, null],
  ] as const) {
    const log = new LogBuilder({ purpose });
    log.call({ messages: start });
    assert.equal(rebuilt(log, facts).nodes.at(-1)?.reason, reason);
  }
});

test("the reward is the rollout's, else the log's newest revision, else null", () => {
  const log = new LogBuilder();
  log.call({ messages: start });
  assert.equal(rebuilt(log).reward, null);
  log.entries.push({ type: "rewarded", time: 2, revision: 2, reward: 0.5, components: { tests: 0.5 } });
  log.entries.push({ type: "rewarded", time: 3, revision: 1, reward: 1, components: {} });
  assert.equal(rebuilt(log).reward, 0.5);
  assert.equal(rebuilt(log).reward_components[0]?.name, "tests");
  assert.equal(rebuilt(log, { reward: null }).reward, null);
});

test("a log without its opening is refused in words", () => {
  assert.throws(() => reconstruct([]), /no `opened` entry/);
});

test("a later twin that never arrived is not taken for the parent", () => {
  const log = new LogBuilder();
  const says = assistant("same words");
  log.call({ messages: start, says, begin: 2000, finish: 2100 });
  log.call({ messages: start, says, begin: 2001, finish: 2101, delivery: "cut" });
  log.call({ messages: [...start, says, user("go on")], begin: 2200, finish: 2300 });
  assert.deepEqual(drawEdges(rebuilt(log)), ["a root", "b root", "c exact a"]);
});

test("the words of a turn in their very place prove that it arrived, unless another turn that said them there did", () => {
  const says = assistant("same words");
  const outcomes = ({ before = start, twin, over = {} }: { before?: Message[]; twin?: "complete" | "cut"; over?: Partial<Restored> }) => {
    const log = new LogBuilder();
    const a = log.call({ messages: start, says, delivery: "none" });
    if (twin) log.call({ messages: start, says, delivery: twin });
    const restored = [recognised(a, before.length, { evidence: "content", ...over })];
    log.call({ messages: [...before, says, user("go on")], restored, parent: a });
    log.call({ messages: [...before, says, user("go on"), assistant("ok"), user("and on")], restored, parent: a });
    return rebuilt(log).calls.map((call) => call.outcome)[0];
  };
  assert.equal(outcomes({}), "delivered");
  assert.equal(outcomes({ over: { evidence: "carrier" }, twin: "complete" }), "delivered");
  assert.equal(outcomes({ twin: "cut" }), "delivered", "one of two that never arrived as far as is known: the one that restore named");
  assert.equal(outcomes({ twin: "complete" }), "undelivered");
  assert.equal(outcomes({ before: [user("another question")] }), "undelivered");
  assert.equal(outcomes({ over: { status: "edited", differences: ["text"] } }), "undelivered");
});

/** `a` is continued whole by `c`, and before that by `b`, whose harness dropped the second half of it. */
function halved(): Trajectory {
  const log = new LogBuilder();
  const a = log.call({ messages: start, says: assistant("one two three four") });
  log.call({ messages: [...start, assistant("one two"), user("so")], parent: a });
  log.call({ messages: [...start, assistant("one two three four"), user("so")], parent: a });
  return rebuilt(log);
}

test("a turn that one branch halved is trained in one piece by the branch that has all of it", () => {
  const { rows } = selectRows(halved());
  assert.deepEqual(
    [...rows].map((row) => row.segments.map(({ kind, reason }) => `${kind} ${reason ?? "-"}`)),
    [
      ["prompt -", "sampled other_row", "observation -", "sampled -"],
      ["prompt -", "sampled -", "sampled -", "observation -", "sampled -"],
    ],
  );
});

test("a row is never cut in the middle of a turn, though another branch ends there", () => {
  const whole = halved().calls[0]?.prompt_length as number;
  const { rows, left_out } = selectRows(halved(), { maxTokens: whole + 3 });
  assert.deepEqual(
    [...rows].map(({ dummy, token_ids, trained_tokens, weight }) => [dummy, token_ids.length, trained_tokens, weight]),
    [[true, whole, 0, 0]],
  );
  assert.deepEqual(left_out, { over_length: 3 });
});

test("the order in which calls were begun is the log's own count, whatever a stepping clock says", () => {
  const log = new LogBuilder();
  const a = log.call({ messages: start, begin: 9000, finish: 9001 });
  const b = log.call({ messages: [...start, assistant("ok"), user("more")], parent: a, begin: 100, finish: 101 });
  const trajectory = rebuilt(log);
  assert.deepEqual(
    trajectory.calls.map((call) => call.call_id),
    [a, b],
  );
  assert.deepEqual(drawEdges(trajectory), ["a root", "b exact a"]);
});

test("a file of before, without the fields that came later, is read, and says null or nothing of them", () => {
  const log = new LogBuilder();
  log.call({ messages: start });
  const file = JSON.parse(JSON.stringify(reconstruct(log.entries))) as {
    calls: Record<string, unknown>[];
    fidelity: Record<string, unknown>;
  };
  for (const call of file.calls)
    for (const later of ["continuity", "replayed_from", "engine_name", "fingerprints", "role_mapping"]) delete call[later];
  delete file.fidelity.continuity;
  const read = Trajectory.parse(file);
  assert.deepEqual([read.calls[0]?.continuity, read.calls[0]?.replayed_from, read.fidelity.continuity], [null, null, {}]);
  assert.equal(selectRows(read).tokens.trained, 2);
});
