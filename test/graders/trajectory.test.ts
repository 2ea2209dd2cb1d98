import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../base/schema/task.ts";
import type { ToolRun, Trajectory } from "../../base/schema/trajectory.ts";
import { grade } from "../../graders/grade.ts";
import { trajectory as grader } from "../../graders/trajectory.ts";
import { type SpokenTurn, spokenTrajectory } from "../fakes/records/spoken-trajectory.ts";

function verdictOn(turns: SpokenTurn[], spec: object) {
  const task = Task.parse({ task_id: "a", instruction: "i", grader: { kind: "trajectory", ...spec } });
  return grade({
    task,
    work: { file: "", sha256: "", bytes: 0, changes: [] },
    trajectory: spokenTrajectory(turns),
    isolation: "container",
    fresh: () => Promise.reject(new Error("a record needs no sandbox")),
    signal: AbortSignal.timeout(60_000),
  });
}

const bash = (command: string): SpokenTurn => ({ tools: [["bash", JSON.stringify({ command })]] });
const turns: SpokenTurn[] = [
  { tools: [["read", '{"path":"a.js","range":{"from":1}}']] },
  bash("npm test"),
  bash("npm test"),
  { text: "done", call: { agent: "helper" } },
];

for (const [title, spec, reward] of [
  ["a tool that was called", { must: [{ tool: "read" }] }, 1],
  ["a tool that was not called", { must: [{ tool: "write" }] }, 0],
  ["an argument by its name", { must: [{ tool: "read", arguments: { path: { equals: "a.js" } } }] }, 1],
  ["an argument by its place", { must: [{ tool: "read", arguments: { "/range/from": { equals: 1 } } }] }, 1],
  ["an argument that differs", { must: [{ tool: "read", arguments: { path: { equals: "b.js" } } }] }, 0],
  ["an argument that only an object's prototype has", { must: [{ tool: "read", arguments: { constructor: { exists: true } } }] }, 0],
  ["a pattern of an argument", { must: [{ tool: "b*", arguments: { command: { matches: "^npm (test|run)" } } }] }, 1],
  ["a forbidden tool", { must_not: [{ tool: "bash" }] }, 0],
  ["a forbidden argument that was not used", { must_not: [{ tool: "*", arguments: { command: { contains: "rm -rf" } } }] }, 1],
  ["an order that was kept", { order: [{ tool: "read" }, { tool: "bash" }, { tool: "bash" }] }, 1],
  ["an order that was not kept", { order: [{ tool: "bash" }, { tool: "read" }] }, 0],
  ["turns", { max_turns: 3 }, 1],
  ["too many turns", { max_turns: 2 }, 0],
  ["too many calls of tools", { max_tool_calls: 2 }, 0],
  ["a loop", { max_repeats: 1 }, 0],
  ["no loop", { max_repeats: 2 }, 1],
] as const)
  test(`${title}: ${reward}`, async () => {
    const verdict = await verdictOn(turns, spec);
    assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [reward, "graded", "T3"], JSON.stringify(verdict.evidence));
  });

test("calls that never reached the harness, side calls and those of other models do not count", async () => {
  for (const call of [{ outcome: "undelivered" }, { outcome: "failed" }, { request_class: "title" }, { other_policy: true }] as const) {
    assert.equal((await verdictOn([{ ...bash("x"), call }], { must: [{ tool: "bash" }] })).reward, 0, JSON.stringify(call));
    assert.equal((await verdictOn([{ ...bash("x"), call }], { must_not: [{ tool: "bash" }] })).reward, 1, JSON.stringify(call));
  }
});

test("arguments that keep a pattern busy for ever do not hide a forbidden call", { timeout: 300_000 }, async () => {
  const verdict = await verdictOn([bash("a".repeat(60))], {
    must_not: [{ tool: "bash", arguments: { command: { matches: "^(a|aa)+$(?<=b)" } } }],
  });
  assert.equal(verdict.reward, 0);
});

test("an argument that says everything is none that was wanted, and its length hides nothing that is forbidden", async () => {
  for (const condition of [{ contains: "rm -rf" }, { matches: "rm -rf" }]) {
    const wanted = [{ tool: "bash", arguments: { command: condition } }];
    for (const length of [10_001, 200_001]) {
      const long = [bash(`${"x".repeat(length)} rm -rf`)];
      assert.equal((await verdictOn(long, { must: wanted })).reward, 0);
      assert.equal((await verdictOn(long, { order: wanted })).reward, 0);
      assert.equal((await verdictOn(long, { must_not: wanted })).reward, 0);
    }
  }
});

test("arguments that are no JSON fit no condition", async () => {
  const broken: SpokenTurn = { tools: [["bash", '{"command":']] };
  assert.equal((await verdictOn([broken], { must: [{ tool: "bash", arguments: { command: { exists: true } } }] })).reward, 0);
  assert.equal((await verdictOn([broken], { must: [{ tool: "bash" }] })).reward, 1);
});

test("a budget of tokens that the engine did not count has no reward", async () => {
  const unknown = { sampled_length: null, usage: null };
  const verdict = await verdictOn([{ text: "x", call: unknown }], { max_sampled_tokens: 10 });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [null, "grader_error", "engine_without_token_ids"]);
  assert.match(verdict.error?.message ?? "", /how many tokens call c0 sampled/);
  assert.equal((await verdictOn([{ text: "x", call: { ...unknown, sampled_length: 11 } }], { max_sampled_tokens: 10 })).reward, 0);
});

test("a spec without a rule, and a glob with many stars, are refused", () => {
  assert.throws(() => grader.spec?.parse({ kind: "trajectory" }), /give at least one rule/);
  assert.throws(() => grader.spec?.parse({ kind: "trajectory", must: [{ tool: "*a*a*a*a*a*" }] }), /at most four stars/);
  assert.throws(() => grader.spec?.parse({ kind: "trajectory", must: [{ tool: "a", arguments: { b: {} } }] }), /give one of equals/);
});

const usualRun: Omit<ToolRun, "ordinal"> = {
  ...{ run_id: "tool1", server: "shop", tool: "cancel_order", arguments: '{"id":"W1"}', call_id: "c0", tool_call_id: "c0t0" },
  ...{ unasked: false, outcome: "ok", result_sha256: "0", parts: [], times: { begun: 0, finished: 1 } },
};

function verdictOnRuns(runs: Partial<ToolRun>[] | undefined, spec: object, more: Partial<Trajectory> = {}) {
  const task = Task.parse({ task_id: "a", instruction: "i", grader: { kind: "trajectory", ...spec } });
  const tool_runs = runs?.map((run, ordinal) => ({ ...usualRun, ordinal, ...run }));
  return grade({
    task,
    work: { file: "", sha256: "", bytes: 0, changes: [] },
    trajectory: { ...spokenTrajectory([{ text: "done" }]), ...(tool_runs && { tool_runs }), ...more },
    isolation: "container",
    fresh: () => Promise.reject(new Error("a record needs no sandbox")),
    signal: AbortSignal.timeout(60_000),
  });
}

const ran = (more: object = {}) => ({ ran: [{ tool: "cancel_order", ...more }] });
const ranNot = (more: object = {}) => ({ ran_not: [{ tool: "cancel_order", ...more }] });

for (const [title, runs, spec, reward] of [
  ["a tool that a service ran", [{}], ran(), 1],
  ["a tool that none ran", [{ tool: "find_order" }], ran(), 0],
  ["no run at all", [], ran(), 0],
  ["an argument that differs", [{}], ran({ arguments: { id: { equals: "W2" } } }), 0],
  ["another server's tool", [{}], ran({ server: "bank" }), 0],
  ["a run that failed, where it must be ok", [{ outcome: "error" }], ran({ ok: true }), 0],
  ["a run that failed, where it must not be ok", [{ outcome: "error" }], ran({ ok: false }), 1],
  ["a run without a result does not fulfil", [{ outcome: "unknown" }], ran({ ok: true }), 0],
  ["a forbidden tool that ran", [{}], ranNot(), 0],
  ["a forbidden tool that failed, where only an ok run is forbidden", [{ outcome: "error" }], ranNot({ ok: true }), 1],
  ["a forbidden tool whose end is unknown", [{ outcome: "unknown" }], ranNot({ ok: true }), 0],
  ["a forbidden tool whose service broke off", [{ outcome: "failed" }], ranNot({ ok: true }), 0],
  ["an order that was kept", [{ tool: "find_order" }, {}], { ran_order: [{ tool: "find_order" }, { tool: "cancel_order" }] }, 1],
  ["an order that was not kept", [{}, { tool: "find_order" }], { ran_order: [{ tool: "find_order" }, { tool: "cancel_order" }] }, 0],
  ["a run without arguments", [{ arguments: "" }], ran({ arguments: { id: { exists: false } } }), 1],
  ["a run that no model asked for", [{ unasked: true, call_id: null, tool_call_id: null }], { unasked: "refuse" }, 0],
  ["runs that models asked for", [{}], { unasked: "refuse" }, 1],
] as [string, Partial<ToolRun>[], object, number][])
  test(`of what services ran, ${title}: ${reward}`, async () => {
    const verdict = await verdictOnRuns(runs, spec);
    assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [reward, "graded", "T3"], JSON.stringify(verdict.evidence));
  });

test("what ran has no reward where the task has no servers of tools, and where the log lost a line that may be a run", async () => {
  assert.match((await verdictOnRuns(undefined, ran())).error?.message ?? "", /the task has no environment.tools/);
  const golden = spokenTrajectory([{ text: "done" }]);
  const lost = { fidelity: { ...golden.fidelity, damaged: [{ call_id: null, reason: "line 7", sampled_tokens: null }] } };
  const verdict = await verdictOnRuns([], ranNot(), lost);
  assert.equal(verdict.reward, null);
  assert.match(verdict.error?.message ?? "", /the session's log is damaged: line 7/);
});
