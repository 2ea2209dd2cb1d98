/** Published sets of tasks with tools, by the packages' own code: what earns there, and what does not. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Task } from "../../base/schema/task.ts";
import { claudeCode } from "../../harnesses/claude-code.ts";
import { examineCalls } from "../../rollouts/accepted/examine-calls.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import { loadTasks } from "../../tasks/index.ts";
import type { WireRequest } from "../fakes/engines/scripted-engine.ts";
import { talked } from "../fakes/rollouts/talked.ts";
import { toolNameIn } from "../fakes/tools/tool-name.ts";
import { need } from "../needs.ts";

const timeout = 600_000;
const examples = join(import.meta.dirname, "../../examples/tool-sets");

test("tau2: the set's own actions and answer earn 1; nothing, one more write and no answer earn 0", { timeout }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pip"))) return;
  const { task, found } = await examined("retail", "tau2-retail-33", timeout);
  assert.deepEqual([task.data_source, Object.keys(task.environment.services ?? {})], ["tau2/retail", ["set"]]);
  const bad = { "bad calls one more write": 0, "bad calls without the last write": 0 };
  assert.deepEqual(found, { gold: 1, "no-op": 0, ...bad, "one more write: one more write": 0, "the right calls twice": 0 });
});

test("agentdojo: the set's own solution earns 1, and 0 where the injected task is done too", { timeout }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pip"))) return;
  const { task, found, components } = await examined("banking", "agentdojo-banking-u0-i0", timeout);
  assert.equal(task.data_source, "agentdojo/banking");
  const both = "bad calls the injected task, then the user's";
  const bad = { "bad calls the injected task": 0, [both]: 0 };
  const more = { "one more write: the injected task": 0, "one more write: the injected task, then the user's": 0 };
  // The set's own scorer accepts a task that was done twice.
  assert.deepEqual(found, { gold: 1, "no-op": 0, ...bad, ...more, "the right calls twice": 1 });
  assert.deepEqual(components[both], { utility: 1, security: 0 });
  assert.deepEqual(components["no-op"], { utility: 0, security: 1 });
});

test("tau2: a real harness serves a customer that a model plays, and earns what the set's scorers say", { timeout }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pip")) || !(await need(t, "harness:claude-code"))) return;
  const [task] = await loadTasks(`${join(examples, "retail")}.set.yaml#tau2-retail-33`, { signal: t.signal });
  const { gold_calls = [], gold_answer = "", simulated_user } = task as Task;
  assert.ok(task && simulated_user);
  assert.match(simulated_user.instructions, /<scenario>/);
  const { backend } = await pickBackend("docker", t.signal);
  const [customer, agent] = [["My order has to be changed. I am in a hurry.", "Yes, please."], ["Who are you?"]];
  for (const [calls, reward] of [
    [gold_calls, 1],
    [gold_calls.slice(0, -1), 0],
  ] as const) {
    let called = 0;
    const { record, trajectory, ofUser } = await talked(t, {
      task,
      backend,
      harness: claudeCode,
      customer: [...customer, "Thank you ###STOP###"].map((text) => ({ text })),
      agent: [
        ...agent.map((text) => ({ text })),
        ...calls.map((call) => (request: WireRequest) => {
          const name = toolNameIn(request, call.server, call.tool) ?? assert.fail(`${call.tool} is not offered`);
          return { tool_calls: [{ id: `c${called++}`, name, arguments: JSON.stringify(call.arguments) }] };
        }),
        { text: `It is done: ${gold_answer}` },
      ],
    });
    assert.deepEqual([record.error, record.verdict?.reward, record.user?.turns, record.user?.end], [null, reward, 2, "stop"]);
    assert.deepEqual([trajectory?.traces.length, trajectory?.fidelity.row_inflation], [1, 1]);
    assert.deepEqual([trajectory?.tool_runs?.length, trajectory?.tool_runs?.some(({ unasked }) => unasked)], [calls.length, false]);
    assert.equal(ofUser?.calls.length, 3);
  }
});

async function examined(file: string, id: string, limit: number) {
  const signal = AbortSignal.timeout(limit);
  const [task] = await loadTasks(`${join(examples, file)}.set.yaml#${id}`, { signal });
  const { backend } = await pickBackend("docker", signal);
  const { gold_calls = [], ...rest } = task as Task;
  const options = { run_id: "tool-sets", owner: "test", times: 1, word: "word", signal };
  const { gradings, verdicts } = await examineCalls({ ...rest, gold_calls }, backend, options);
  const componentsOf = (index: number) => Object.entries(verdicts[index]?.components ?? {}).map(([name, { value }]) => [name, value]);
  return {
    task: task as Task,
    found: Object.fromEntries(gradings.map(({ work, reward }) => [work, reward])),
    components: Object.fromEntries(gradings.map(({ work }, index) => [work, Object.fromEntries(componentsOf(index))])),
  };
}
