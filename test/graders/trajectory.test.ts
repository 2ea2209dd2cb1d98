import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../base/schema/task.ts";
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

test("arguments that keep a pattern busy for ever do not hide a forbidden call", { timeout: 120_000 }, async () => {
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
