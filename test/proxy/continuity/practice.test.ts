import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNamed } from "../../../engines/registry.ts";
import { startPracticeEngine } from "../../../practice/start.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { verifyTrajectory } from "../../../reconstruct/verify.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import { startRecordingRelay } from "../../fakes/proxies/recording-relay.ts";

const tools = [
  { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } },
];
const play = (turn: number): string =>
  `<think>\nStep ${turn}, naïve 日本.\n</think>\n\nI look.\n<tool_call>\n{"name": "bash", "arguments": {"command":  "ls ${turn}"}}\n</tool_call>`;

test("on a sampling engine with byte pairs, calls, thoughts, free talk and cut-off turns stay one sequence, each context the engine's own", async () => {
  await using engine = await startPracticeEngine({ seed: 3 });
  await using relay = await startRecordingRelay(engine.url);
  const adapter = engineNamed("vllm").create({ baseUrl: relay.url, apiKey: null });
  await using proxy = await HarnessProxy.start({ engine: adapter, store: new MemoryStore(), version: "test" });
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", restore: "full" });
  const client = new Client(proxy, session.id, key);
  const messages: Record<string, unknown>[] = [{ role: "user", content: "What is in naïve 日本?" }];
  for (let turn = 0; turn < 12; turn++) {
    // Every third turn is free: a random model's, cut off where it does not end by itself.
    const how = turn % 3 === 2 ? { max_tokens: 30 } : { structured_outputs: { choice: [play(turn)] } };
    const { reasoning_content: _, ...said } = await client.say(messages, { tools, seed: turn, ...how });
    const calls = (said.tool_calls ?? []) as { id: string }[];
    messages.push(said, ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: `file ${turn}\n日本\n` })));
    if (calls.length === 0) messages.push({ role: "user", content: `Go on, ${turn}.` });
  }
  const trajectory = await client.trajectory();
  await adapter.close();
  const report = verifyTrajectory(trajectory, relay.exchanges);
  assert.deepEqual(report.mismatches, []);
  assert.equal(report.calls, 12);
  assert.deepEqual(trajectory.fidelity.matches, { root: 1, exact: 11 });
  assert.deepEqual(trajectory.fidelity.continuity, { first_turn: 1, continued: 11 });
  assert.equal(trajectory.traces.length, 1);
  assert.equal(trajectory.fidelity.row_inflation, 1);
  for (const { sampling, logprob_semantics: told } of trajectory.calls)
    assert.deepEqual(
      told,
      "structured_outputs" in sampling ? { kind: "raw", grammar: true, grammar_logprobs: "masked" } : { kind: "raw", grammar: false },
    );
});
