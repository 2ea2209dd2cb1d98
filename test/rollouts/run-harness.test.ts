/** The agent's clock and its last words, with a real command in a process sandbox and a real proxy in front of a scripted engine. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import { Limits } from "../../base/schema/task.ts";
import { commandHarness } from "../../harnesses/command.ts";
import { cutAfter, Replay, toRecording } from "../../proxy/index.ts";
import type { PreparedRollout } from "../../rollouts/prepare.ts";
import type { RolloutPlan } from "../../rollouts/rollout-plan.ts";
import { runHarness } from "../../rollouts/run-harness.ts";
import type { RunSetup } from "../../rollouts/run-setup.ts";
import { NetworkLog } from "../../sandboxes/network/network-log.ts";
import type { OpenNetwork } from "../../sandboxes/network/open-network.ts";
import { nodeInside, nodeMount } from "../../sandboxes/node-mount.ts";
import { localProcess } from "../../sandboxes/process.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { until } from "../fakes/machine/until.ts";
import { type EnginesAt, enginesAt } from "../fakes/proxies/engines-at.ts";
import { LogBuilder } from "../fakes/records/log-builder.ts";

/** Prints some noise, asks once, and stays for so many milliseconds afterwards. */
const agent = (stayMs: number): string => `
console.log("noise ".repeat(1_000));
const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer " + process.env.OPENAI_API_KEY },
  body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
});
console.log((await answer.json()).choices[0].message.content);
await new Promise((resolve) => setTimeout(resolve, ${stayMs}));
`;

/** Has the engine at work on one call after the other, for ever. */
const talker = `
for (;;) {
  const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer " + process.env.OPENAI_API_KEY },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
  });
  await answer.text();
}
`;

test("a clock cuts no agent out of the loss by what it asks of an engine that is quick for others", { timeout: 300_000 }, async () => {
  for (const [canaryMs, slow_engine] of [
    [0, false],
    [2_500, true],
  ] as const) {
    await using scope = new AsyncDisposableStack();
    const reply = (_name: string, { probe }: WireRequest): ScriptedReply => ({ text: "hello", beforeEnd: sleep(probe ? canaryMs : 200) });
    const at = scope.use(await enginesAt(reply, { a: {} }));
    const { running } = await begin(scope, at, { agentSeconds: 4, script: talker });
    const ended = await running;
    assert.deepEqual([ended.stop_reason, ended.engine_share > 0.5, ended.slow_engine], ["harness_timeout", true, slow_engine]);
  }
});

/** What became of an agent that has so many seconds while the engine's weights are updated for so many milliseconds. */
async function run(agentSeconds: number, pausedMs: number, stayMs: number) {
  await using scope = new AsyncDisposableStack();
  const at = scope.use(await enginesAt(() => ({ text: "hello" }), { a: {} }));
  const { body } = await at.control("POST", "/pause");
  const { running } = await begin(scope, at, { agentSeconds, script: agent(stayMs) });
  await until(() => at.proxy.pool.waiting === 1);
  await sleep(pausedMs);
  await at.control("POST", "/resume", { fence: body.fence });
  return await running;
}

/** An agent of this script at its work. */
async function begin(
  scope: AsyncDisposableStack,
  { proxy }: EnginesAt,
  {
    agentSeconds,
    script,
    spec = {},
    log = new NetworkLog(),
  }: { agentSeconds: number; script: string; spec?: Partial<SessionSpec>; log?: NetworkLog },
) {
  const signal = AbortSignal.timeout(60_000);
  const { session, key } = await proxy.openSession({ any_model: true, ...spec });
  const limits = Limits.parse({ agent_seconds: agentSeconds, output_bytes: 2_000 });
  const sandbox = scope.use(
    await localProcess.create(
      {
        run_id: "clock",
        owner: await currentOwner(),
        image: null,
        workdir: "/work",
        mounts: { [nodeInside]: await nodeMount() },
        env: {},
        limits,
      },
      signal,
    ),
  );
  await sandbox.writeFiles([{ path: "agent.mjs", content: Buffer.from(script), mode: 0o644 }]);
  const harness = commandHarness({ argv: [sandbox.path(`${nodeInside}/bin/node`), "agent.mjs"] });
  const context = { instruction: "hi", baseUrl: proxy.url, apiKey: key, model: "m", contextWindow: null };
  const launch = harness.launch({ ...context, home: sandbox.path("/home/agent"), workdir: sandbox.path("/work"), pack: "" });
  const plan = { harness, task: { limits, environment: { workdir: "/work", env: {}, mounts: {} } } } as unknown as RolloutPlan;
  // In an object: an async function would wait for it.
  const network: OpenNetwork = { env: {}, log, [Symbol.asyncDispose]: async () => undefined };
  return { session, running: runHarness({ proxy } as RunSetup, plan, { sandbox, session, launch, network } as PreparedRollout, signal) };
}

/** Asks for an answer and ends before it comes. */
const leaver = `
void fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer " + process.env.OPENAI_API_KEY },
  body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
}).catch(() => undefined);
setTimeout(() => process.exit(0), 1_000);
`;

test("a harness that ends before its last answer takes that turn not out of training", { timeout: 300_000 }, async () => {
  await using scope = new AsyncDisposableStack();
  const hold = Promise.withResolvers<void>();
  const at = scope.use(await enginesAt(() => ({ text: "a bad turn", beforeEnd: hold.promise }), { a: {} }));
  const spec = { sandboxed: true, purpose: "train" } as const;
  const { running, session } = await begin(scope, at, { agentSeconds: 30, script: leaver, spec });
  const entries = () => at.proxy.sessions.store.read(session.id);
  await until(async () => (await entries()).some(({ type }) => type === "answered"));
  // Long enough for a harness that is gone to be seen as such.
  await sleep(2_000);
  hold.resolve();
  assert.equal((await running).stop_reason, "exited");
  const { calls, fidelity } = await at.proxy.trajectory(session.id);
  assert.deepEqual([calls[0]?.outcome, calls[0]?.error], ["undelivered", null]);
  assert.deepEqual([fidelity.trainable_tokens, fidelity.excluded], ["a bad turn".length + 1, {}]);
});

test("a sandbox that the agent takes down while it repeats recorded turns leaves no result", { timeout: 300_000 }, async () => {
  await using at = await enginesAt(() => ({ text: "hello" }), { a: {} });
  const { session } = await at.proxy.openSession({ any_model: true });
  const harness = commandHarness({ argv: ["agent"] });
  const limits = Limits.parse({});
  const plan = { harness, task: { limits, environment: { workdir: "/work", env: {}, mounts: {} } } } as unknown as RolloutPlan;
  const dead = new AlidadeError("sandbox_out_of_memory", "the sandbox is gone for its memory");
  const sandbox = { exec: () => Promise.reject(dead) };
  const prepared = { session, sandbox, launch: { argv: [], env: {} }, network: { env: {} } } as unknown as PreparedRollout;
  const running = () => runHarness({ proxy: at.proxy } as RunSetup, plan, prepared, AbortSignal.timeout(60_000));
  await assert.rejects(running(), dead, "of its own turns it is the result");
  const log = new LogBuilder();
  log.call({ messages: [{ role: "user", parts: [{ type: "text", text: "hi" }] }] });
  const recording = toRecording("sestest", log.entries);
  session.replay = new Replay({ recording, cut: cutAfter(recording, null), after: "sample", words: "go_on" });
  const { infrastructure } = await running();
  assert.equal(infrastructure?.code, "replay_diverged");
  assert.match(infrastructure?.message ?? "", /did not come to its last recorded turn: the sandbox is gone for its memory/);
});

test("a weight update does not eat the agent's seconds", { timeout: 300_000 }, async () => {
  const ended = await run(6, 7_000, 1_000);
  assert.equal(ended.stop_reason, "exited", ended.output_tail);
  assert.match(ended.output_tail, /hello/);
  assert.ok(ended.engine_share < 0.5, `the time at the gate counts for nothing: ${ended.engine_share}`);
});

test("the agent's own seconds end it all the same", { timeout: 300_000 }, async () => {
  const ended = await run(6, 500, 120_000);
  assert.deepEqual([ended.stop_reason, ended.cut_by_clock], ["harness_timeout", true]);
});

test("of a harness that prints more than is kept the last words are known", { timeout: 300_000 }, async () => {
  const ended = await run(60, 0, 0);
  assert.deepEqual([ended.stop_reason, ended.output_tail.split("\n").at(-2)], ["exited", "hello"]);
});

test("a harness that fails is said with the hosts that it was refused, and not with those of the set-up", {
  timeout: 300_000,
}, async () => {
  await using scope = new AsyncDisposableStack();
  const at = scope.use(await enginesAt(() => ({ text: "hello" }), { a: {} }));
  const log = new NetworkLog();
  log.refused("setup", { host: "pypi.org", port: 443 }, "name_not_allowed");
  for (const host of ["a.org", "b.org", "c.org", "d.org"]) log.refused("agent", { host, port: 443 }, "name_not_allowed");
  const { running } = await begin(scope, at, { agentSeconds: 30, script: "process.exit(7)", log });
  const { stop_reason, failure } = await running;
  assert.equal(stop_reason, "no_call_seen");
  const named = ["a", "b", "c"].map((name) => `${name}.org:443 (name_not_allowed)`).join(", ");
  assert.match(failure?.message ?? "", new RegExp(`exit code 7.*; the sandbox's network refused ${RegExp.escape(named)}, and 1 more$`));
});
