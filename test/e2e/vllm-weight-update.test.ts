/**
 * A real vLLM whose weights are reloaded under it: it keeps its prefix cache, so that a turn is sampled on keys and values
 * of the old weights and its logprobs are no policy's. What Alidade does against it, and what vLLM says of its weights.
 */
import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { Engine, SampleRequest } from "../../engines/engine.ts";
import { engineNamed } from "../../engines/registry.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { selectRows } from "../../reconstruct/index.ts";
import { Client } from "../fakes/proxies/proxy-at.ts";
import { taughtModel } from "../interop/vllm/place.ts";
import { startOwnVllm, type Vllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";

/** Blocks of the prefix cache are 128 tokens on a CPU; less than one is never shared. */
const messages = [{ role: "user", content: "Look around, and say what you see. ".repeat(40) }];
const step3 = { version: "step-3", step: 3 };
/** Sampled and scored by one server in float32. */
const tolerance = 1e-4;

test("weights that are reloaded under a running vLLM", { timeout: 600_000 }, async (t) => {
  if (!(await need(t, "vllm"))) return;
  const weights = await ownWeights(t);
  await using vllm = await startOwnVllm(weights, t.signal);
  const engine = engineNamed("vllm").create({ baseUrl: vllm.url, apiKey: null });
  t.after(() => engine.close());

  await t.test("its own prefix cache outlives them: the same salt gives logprobs of no policy, until it is reset", async (t) => {
    await mismatch(engine, vllm.model, "one salt", t);
    await changeWeights(vllm, weights);
    const stale = await mismatch(engine, vllm.model, "one salt", t);
    const salted = await mismatch(engine, vllm.model, "another salt", t);
    assert.equal(await engine.resetPrefixCache?.(t.signal), "reset");
    const reset = await mismatch(engine, vllm.model, "one salt", t);
    t.diagnostic(JSON.stringify({ stale, salted, reset }));
    assert.ok(stale.cached > 0 && stale.worst > 10 * tolerance, "the attack: old keys and values are read");
    assert.ok(salted.cached === 0 && salted.worst < tolerance);
    assert.ok(reset.cached === 0 && reset.worst < tolerance);
  });

  await t.test("while a request is in flight it keeps its cache, and says so", async (t) => {
    const [leave, began] = [new AbortController(), Promise.withResolvers<void>()];
    const asked = request(vllm.model, { sampling: { ignore_eos: true, max_tokens: 8000 } });
    const sampling = engine.sampleInto?.(asked, leave.signal, () => began.resolve()) ?? Promise.resolve();
    const left = assert.rejects(sampling, /enough/);
    await Promise.race([began.promise, left]);
    assert.equal(await engine.resetPrefixCache?.(t.signal), "failed");
    leave.abort(new Error("enough"));
    await left;
  });

  await t.test("behind a fence nothing is sampled on old keys, whatever the new weights are called", async (t) => {
    await using proxy = await proxyAt(engine);
    for (const version of ["again", "again", null]) {
      await sayOnce(proxy);
      const { fence } = await proxy.fences.pause({ mode: "drain", timeoutSeconds: 60, signal: t.signal });
      await changeWeights(vllm, weights);
      const policy = version === null ? null : { version, step: null };
      if (policy) await proxy.fences.setPolicy({ fence, policy, engineVersion: "default", signal: t.signal });
      assert.deepEqual((await proxy.fences.resume(fence, t.signal)).prefix_cache, { vllm: "reset" });
      const after = await sayOnce(proxy);
      const [row] = selectRows(after).rows;
      assert.ok(row && row.trained_tokens > 0);
      const scored = (await engine.score?.(vllm.model, row.token_ids, t.signal)) ?? [];
      const worst = worstOf(row.logprobs.slice(row.prompt_length), scored.slice(row.prompt_length));
      t.diagnostic(`${version}: ${row.trained_tokens} tokens, ${worst}`);
      assert.ok(worst < tolerance);
      assert.equal(after.calls[0]?.usage?.cached_tokens ?? 0, 0);
    }
  });

  await t.test("generations that a fence interrupts go on under the new weights, and both parts are their own weights'", async (t) => {
    await using proxy = await proxyAt(engine, { version: "default", step: 1 });
    const words = await onlyWords(engine, vllm.model, t.signal);
    const clients = await Promise.all(Array.from({ length: 8 }, () => talker(proxy, words)));
    const answers = clients.map((client, at) => client.say([{ role: "user", content: `Say what you see, ${at} times.` }]));
    await Promise.all(clients.map((client) => client.sampled(64)));
    const since = Date.now();
    const paused = await proxy.fences.pause({ mode: "continue", timeoutSeconds: 60, signal: t.signal });
    const pausedMs = Date.now() - since;
    await changeWeights(vllm, weights);
    await proxy.fences.setPolicy({ fence: paused.fence, policy: { version: "next", step: 2 }, engineVersion: "default", signal: t.signal });
    await proxy.fences.resume(paused.fence, t.signal);
    await Promise.all(answers);
    const trajectories = await Promise.all(clients.map((client) => client.trajectory()));
    const late = await Promise.all(trajectories.map((trajectory) => worstOfPart(engine, vllm.model, trajectory, "next", t.signal)));
    await changeWeights(vllm, weights, 1 / 1.02);
    const early = await Promise.all(trajectories.map((trajectory) => worstOfPart(engine, vllm.model, trajectory, "default", t.signal)));
    t.diagnostic(JSON.stringify({ pausedMs, paused, late, early }));
    assert.deepEqual(paused.interrupted, { continued: 8, drained: {}, again: {} });
    for (const { tokens, worst } of [...late, ...early]) assert.ok(tokens > 0 && worst < 1e-3);
    // The bias that makes words of them keeps them out of the loss here.
    for (const { calls, fidelity } of trajectories)
      assert.deepEqual(
        [calls[0]?.outcome, calls[0]?.policy.parts?.length, fidelity.excluded],
        ["delivered", 2, { penalised_sampling: 600 }],
      );
  });

  await t.test("a policy by another name than vLLM's own is refused, and both names are said", async () => {
    const told = await fetch(`${vllm.url}/update_weight_version`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ new_version: "step-3" }),
    });
    assert.equal(told.status, 200, await told.text());
    await assert.rejects(proxyAt(engine, { version: "nope", step: 99 }), /"nope".*"vllm".*"step-3"/);
    await using proxy = await proxyAt(engine, step3);
    assert.equal(proxy.pool.named("vllm").describe().policy_check, "agrees");
  });
});

const proxyAt = (engine: Engine, policy: { version: string; step: number | null } | null = null): Promise<HarnessProxy> =>
  HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", policy });

const request = (model: string, fields: Partial<SampleRequest>): SampleRequest => ({
  model,
  messages: messages.map(({ content }) => ({ role: "user", parts: [{ type: "text", text: content }] })),
  tools: [],
  tool_choice: null,
  sampling: {},
  call_id: "update",
  ...fields,
});

/** What was sampled, against what the server's weights say of it now: prompt logprobs are never read from the cache. */
async function mismatch(engine: Engine, model: string, cache_salt: string, t: TestContext): Promise<{ worst: number; cached: number }> {
  const asked = request(model, { cache_salt, sampling: { temperature: 1, top_p: 1, top_k: -1, max_tokens: 24, seed: 1 } });
  const [prompt, ids, logprobs]: [number[], number[], (number | null)[]] = [[], [], []];
  let cached = 0;
  for await (const event of engine.sample(asked, t.signal)) {
    if (event.type === "prompt") prompt.push(...event.token_ids);
    if (event.type === "tokens") ids.push(...event.token_ids);
    if (event.type === "tokens") logprobs.push(...event.logprobs);
    if (event.type === "end") cached = event.usage.cached_tokens ?? 0;
  }
  const scored = (await engine.score?.(model, [...prompt, ...ids], t.signal))?.slice(prompt.length) ?? [];
  return { worst: worstOf(logprobs, scored), cached };
}

function worstOf(recorded: (number | null)[], scored: (number | null)[]): number {
  return Math.max(...recorded.map((one, at) => Math.abs((one ?? Number.NaN) - (scored[at] ?? Number.NaN))));
}

async function sayOnce(proxy: HarnessProxy): Promise<Trajectory> {
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train" });
  const client = new Client(proxy, session.id, key);
  await client.say(messages);
  return client.trajectory();
}

async function ownWeights(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-weights-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  await cp(taughtModel(), folder, { recursive: true });
  return folder;
}

/** One whose answers are words alone, and long enough for an update in their middle. */
async function talker(proxy: HarnessProxy, logit_bias: Record<string, number>): Promise<Client> {
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", sampling: { logit_bias, max_tokens: 600 } });
  return new Client(proxy, session.id, key);
}

/** Keeps the model from ending its turn and from calling tools. */
async function onlyWords(engine: Engine, model: string, signal: AbortSignal): Promise<Record<string, number>> {
  const marks = ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<think>", "</think>"];
  const ids = await Promise.all(marks.map((text) => engine.tokenize?.(model, { text }, signal)));
  return Object.fromEntries(ids.flatMap((one) => (one?.length === 1 ? [[String(one[0]), -100]] : [])));
}

/** The tokens of these weights, against what the server's weights say of them now. */
async function worstOfPart(engine: Engine, model: string, { nodes }: Trajectory, version: string, signal: AbortSignal) {
  const at = nodes.findIndex((node) => node.policy_version === version);
  const ids = nodes.slice(0, at + 1).flatMap(({ token_ids }) => token_ids);
  const part = nodes[at];
  const scored = (await engine.score?.(model, ids, signal)) ?? [];
  const tokens = part?.token_ids.length ?? 0;
  return { tokens, worst: worstOf(part?.logprobs ?? [], scored.slice(ids.length - tokens)) };
}

/** Other weights in the same file, and a server that is told to read it. */
async function changeWeights(vllm: Vllm, weights: string, factor = 1.02): Promise<void> {
  const file = join(weights, "model.safetensors");
  const bytes = await readFile(file);
  // A header of JSON behind its length, then float32: every number is a little larger, or smaller.
  for (let at = 8 + Number(bytes.readBigUInt64LE(0)); at < bytes.length; at += 4) bytes.writeFloatLE(bytes.readFloatLE(at) * factor, at);
  await writeFile(file, bytes);
  const answer = await fetch(`${vllm.url}/collective_rpc`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ method: "reload_weights" }),
  });
  assert.equal(answer.status, 200, await answer.text());
}
