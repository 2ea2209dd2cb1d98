/**
 * The demo's task with real harnesses in Docker against a real vLLM: server, adapter and test by one hand prove nothing
 * about the wire. The model plays through vLLM's own structured outputs; vllm-by-itself.test.ts forces nothing.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { engines } from "../../engines/registry.ts";
import { startVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { examples, play } from "./play.ts";
import { proveItCanFail, proveRewards, proveTokens } from "./prove.ts";

test("a real vLLM gives ids and logprobs, and the probe finds them", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await using vllm = await startVllm(t.signal);
  const engine = engines[0]?.create({ baseUrl: vllm.url, apiKey: null });
  assert.ok(engine);
  const facts = await engine.probe(t.signal);
  assert.deepEqual([facts.token_ids, facts.logprobs, facts.logprob_semantics, facts.missing], [true, true, "raw", null]);
  assert.ok(facts.models.includes(vllm.model));
  await engine.close();
});

for (const harness of ["pi", "codex", "claude-code"] as const)
  test(`${harness} solves the demo's task in Docker against a real vLLM, and every trained token is proven`, async (t) => {
    if (!(await need(t, "vllm")) || !(await need(t, "docker")) || !(await need(t, `harness:${harness}`))) return;
    await using vllm = await startVllm(t.signal);
    const task = join(examples, "demo/tasks/merge-ranges");
    await using played = await play({
      harness,
      engineUrl: vllm.url,
      task,
      plays: join(task, "plays.json"),
      sandbox: "docker",
      // The plays have no thoughts, and this server's parser would take their text for one.
      sampling: { chat_template_kwargs: { enable_thinking: false } },
      signal: t.signal,
    });
    proveRewards(played);
    proveTokens(played);
    proveItCanFail(played);
    for (const trajectory of played.trajectories) t.diagnostic(`${trajectory.rollout_id}: ${JSON.stringify(trajectory.fidelity)}`);
  });
