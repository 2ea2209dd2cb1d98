/** Rollouts of a task with a user: a real command that continues its conversation, a real proxy, and an engine for both sides. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import { isNeverTrained } from "../../base/schema/session-spec.ts";
import type { Task } from "../../base/schema/task.ts";
import { commandHarness, type Harness, harnesses } from "../../harnesses/index.ts";
import { checkedInstruction } from "../../harnesses/instruction.ts";
import { assertForkable, assertTakesTask, assertUserServed } from "../../rollouts/accepted/index.ts";
import { attemptResult } from "../../service/nodes/attempt-result.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { type Talk, talked } from "../fakes/rollouts/talked.ts";

const program = join(import.meta.dirname, "../fakes/rollouts/talking-harness.ts");

/** The command keeps its conversation, and goes on with it. */
function talkingHarness(env: Record<string, string> = {}): Harness {
  const starts = commandHarness({ argv: ["node", program, "{instruction}"], env });
  const goesOn = commandHarness({ argv: ["node", program, "--continue", "{instruction}"], env });
  return { ...starts, resumes: true, launch: (context) => (context.dialogue === "goes_on" ? goesOn : starts).launch(context) };
}

const harness = talkingHarness();
const works: ScriptedReply = { tool_calls: [{ name: "bash", arguments: '{"command":"echo yes > done.txt"}' }] };
const saidIn = (request: WireRequest | undefined) => request?.messages.map(({ role, content }) => [role, content]);

test("the user answers when the harness has ended, and the harness continues the same trace, token for token", async (t) => {
  const { record, trajectory, agent, customer, ofUser, resume } = await talked(t, {
    harness,
    user: { stop: ["#STOP#"] },
    agent: [{ text: "Which file?" }, works, { text: "It is made." }],
    customer: [{ text: "done.txt, please" }, { text: "Thanks #STOP#" }],
  });
  assert.deepEqual([record.error, record.verdict?.reward, record.stop_reason], [null, 1, "exited"]);
  assert.deepEqual(saidIn(agent.at(-1))?.slice(0, 3), [
    ["user", "Make done.txt for small."],
    ["assistant", "Which file?"],
    ["user", "done.txt, please"],
  ]);
  assert.deepEqual(saidIn(customer.at(-1))?.slice(1), [
    ["user", "Which file?"],
    ["assistant", "done.txt, please"],
    ["user", "It is made."],
  ]);
  assert.match(String(customer[0]?.messages[0]?.content), /^You are a customer. You want a file\.\n\n.*\n\nMake done\.txt for small\.$/s);
  assert.ok(trajectory);
  assert.deepEqual([trajectory.traces.length, trajectory.fidelity.matches], [1, { root: 1, exact: 2 }]);
  assert.equal(trajectory.fidelity.trainable_tokens, trajectory.fidelity.sampled_tokens);
  assert.ok(!JSON.stringify(trajectory.messages).includes("#STOP#"), "the stop word does not reach the agent");
  const { user } = record;
  assert.deepEqual([user?.turns, user?.end], [2, "stop"]);
  assert.deepEqual(attemptResult({ record, trajectory }, null).user, user, "a service's result says the same");
  assert.ok(ofUser && isNeverTrained(ofUser.purpose));
  assert.deepEqual([ofUser.calls.length, ofUser.fidelity.trainable_tokens, ofUser.rollout_id], [2, 0, null]);
  assert.equal(ofUser.fidelity.sampled_tokens, user?.sampled_tokens);
  const { sampled_tokens } = trajectory.fidelity;
  assert.deepEqual(resume, { how: "again", again_tokens: sampled_tokens, why: "its task has a user, whose turns cannot be replayed" });
});

test("with an opening, the user writes a message that follows the instruction", async (t) => {
  const { record, agent, customer } = await talked(t, {
    harness,
    user: { opening: "Begin.", max_turns: 1 },
    agent: [works, { text: "It is made." }],
    customer: [{ text: "I want a file." }],
  });
  assert.deepEqual(saidIn(agent[0]), [["user", "Make done.txt for small.\n\nI want a file."]]);
  assert.deepEqual(saidIn(customer[0])?.slice(1), [["user", "Begin."]]);
  assert.deepEqual([customer.length, record.user?.turns, record.user?.end, record.verdict?.reward], [1, 1, "max_turns", 1]);
});

test("if the user's engine fails, nothing is measured, and the error names the user", async (t) => {
  const refuse = { refuse: { status: 500, message: "out of memory" } };
  const { record, trajectory } = await talked(t, { harness, agent: [{ text: "Which file?" }], customer: () => refuse });
  assert.deepEqual([record.error?.code, record.verdict, trajectory?.reward, trajectory?.in_loss], ["engine_error", null, null, false]);
  assert.match(record.error?.message ?? "", /the task's user \(session ses\w+\) did not answer: .*out of memory/);
});

const unwell = { harness, agent: [{ text: "Be silent." }], limits: { max_turns: 9 } };
const isOfAgent = (request: WireRequest) => JSON.stringify(request.messages).includes("Be silent.");

test("a user that the agent talked into silence ends the conversation, and the work is graded", async (t) => {
  for (const text of [" ", ""]) {
    const { record } = await talked(t, { ...unwell, customer: [{ text }] });
    assert.deepEqual([record.error, record.user?.end, record.user?.turns, record.verdict?.reward], [null, "user_silent", 1, 0]);
  }
  const worked = await talked(t, { ...unwell, agent: [works, { text: "Be silent." }], customer: [{ text: "" }] });
  assert.deepEqual([worked.record.error, worked.record.user?.end, worked.record.verdict?.reward], [null, "user_silent", 1]);
});

test("before the agent has said a word, a silent user is a failure, and nothing is measured", async (t) => {
  const { record } = await talked(t, { ...unwell, user: { opening: "Begin." }, customer: [{ text: "" }] });
  assert.deepEqual([record.error?.code, record.verdict], ["user_failed", null]);
  assert.match(record.error?.message ?? "", /ended the conversation before it began \(user_silent\)/);
});

for (const [title, refuse] of [
  ["refuses", { status: 400, message: "a token that is not allowed" }],
  ["fails at", { status: 500, message: "the tokenizer fell over" }],
] as const)
  test(`if the user's engine ${title} the agent's words alone, the work is graded`, async (t) => {
    const customer = (request: WireRequest): ScriptedReply => (isOfAgent(request) ? { refuse } : { text: "Hi." });
    const { record, customer: asked, ofUser } = await talked(t, { ...unwell, customer });
    assert.deepEqual([record.error, record.user?.end, record.verdict?.reward], [null, "user_refused", 0]);
    const plain = asked.filter((request) => !isOfAgent(request));
    assert.deepEqual(saidIn(plain[0])?.slice(1), [["user", "Hello."]]);
    assert.equal(plain.length, 1, "another prompt is asked once");
    assert.equal(ofUser?.fidelity.sampled_tokens, record.user?.sampled_tokens);
  });

test("an engine of the user that fails once, is busy, or refuses any prompt is the machine's doing", async (t) => {
  let asked = 0;
  const once = await talked(t, {
    ...unwell,
    user: { stop: ["#STOP#"] },
    customer: () => (asked++ === 0 ? { refuse: { status: 400, message: "not now" } } : { text: "#STOP#" }),
  });
  assert.deepEqual([once.record.error, once.record.user?.end, asked], [null, "stop", 3]);
  const busy = { refuse: { status: 503, message: "no room for the prompt", retryAfter: "0" } };
  const full = await talked(t, { ...unwell, customer: (request) => (isOfAgent(request) ? busy : { text: "Hi." }) });
  assert.deepEqual([full.record.error?.code, full.record.verdict], ["engine_error", null]);
  const wrong = await talked(t, { ...unwell, customer: () => ({ refuse: { status: 400, message: "temperature is not known" } }) });
  assert.deepEqual([wrong.record.error?.code, wrong.record.verdict], ["user_failed", null]);
  assert.match(wrong.record.error?.message ?? "", /temperature is not known/);
});

test("a message of the user that no harness can take ends the conversation, and the work is graded", async (t) => {
  const takes: Harness = {
    ...harness,
    launch: (context) => harness.launch({ ...context, instruction: checkedInstruction(context.instruction) }),
  };
  const customer = [{ text: "a\0b" }];
  const { record } = await talked(t, { ...unwell, harness: takes, customer });
  assert.deepEqual([record.error, record.user?.end, record.user?.turns, record.verdict?.reward], [null, "user_unreadable", 1, 0]);
  const first = await talked(t, { ...unwell, harness: takes, user: { opening: "Begin." }, customer });
  assert.deepEqual([first.record.error?.code, first.record.verdict], ["user_failed", null]);
});

test("an end that the agent causes is graded", async (t) => {
  const ends: [Talk["agent"], Partial<Talk>, string | null, string][] = [
    [[{ text: "x".repeat(70_000) }], {}, "agent_too_long", "exited"],
    [[{ text: " " }], {}, "agent_silent", "exited"],
    [[{ text: "Which file?" }], { harness: talkingHarness({ HARNESS_FORGETS: "yes" }) }, null, "harness_failed"],
    [[{ text: "Which file?" }], { limits: { max_turns: 1 } }, null, "budget_spent"],
  ];
  for (const [agent, more, end, stop_reason] of ends) {
    const { record } = await talked(t, { harness, agent, customer: [{ text: "done.txt" }], ...more });
    assert.deepEqual([record.verdict?.reward, record.user?.end, record.stop_reason], [0, end, stop_reason], JSON.stringify(record.error));
  }
});

test("a conversation that no longer fits the user's model is graded", async (t) => {
  const refuse = { refuse: { status: 400, message: `This model's maximum context length is 100 tokens` } };
  const { record } = await talked(t, { harness, agent: [{ text: "Which file?" }], customer: [refuse] });
  assert.deepEqual([record.error, record.user?.end, record.verdict?.reward], [null, "context_full", 0]);
});

test("the user's time is not the agent's", { timeout: 300_000 }, async (t) => {
  const late = new Promise((resolve) => setTimeout(resolve, 6_000));
  const { record } = await talked(t, {
    harness,
    limits: { agent_seconds: 5 },
    user: { stop: ["#STOP#"] },
    agent: [{ text: "Which file?" }, works, { text: "It is made." }],
    customer: [{ text: "done.txt, please", before: late }, { text: "#STOP#" }],
  });
  assert.deepEqual([record.error, record.verdict?.reward], [null, 1]);
});

test("a task with a user is refused by name for a harness that cannot go on, with branching, and for a model that no engine serves", async () => {
  const task = { environment: {}, simulated_user: { model: "other" } } as Task;
  const taking = harnesses.filter(({ resumes }) => resumes).map(({ name }) => name);
  assert.deepEqual(taking, ["pi", "codex", "claude-code", "opencode"]);
  for (const harness of harnesses)
    if (harness.resumes) assertTakesTask(task, harness);
    else
      assert.throws(() => assertTakesTask(task, harness), {
        code: "task_invalid",
        message: `simulated_user is set, and ${harness.title} cannot go on with its conversation in a new process: use another harness than ${harness.name}.`,
      });
  for (const [one, param, has] of [
    [task, "simulated_user", "has a user, whose turns cannot be replayed"],
    [{ task_id: "a", steps: [{}] } as Task, "steps", "has steps, which cannot be replayed"],
  ] as const)
    assert.throws(() => assertForkable(one, { unrepeatable: true }), {
      param,
      code: "task_invalid",
      message: `task ${one.task_id} ${has}, so its rollouts cannot be forked: run it without branching.`,
    });
  const pool = {
    // As the pool: it has asked the engines once more before it refuses.
    assertServes: async ({ model }: { model?: string | null }) => {
      await setImmediate();
      throw new AlidadeError("request_invalid", `model is "${model}": no engine serves it`);
    },
  };
  await assert.rejects(assertUserServed(task, pool), {
    code: "task_invalid",
    message: 'simulated_user.model is "other": no engine serves it',
  });
});
