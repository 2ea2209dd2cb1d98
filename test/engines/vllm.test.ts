/** What is vLLM's alone, over its wire as scripted; vLLM itself is met in test/e2e/vllm-engine.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { engineNamed } from "../../engines/registry.ts";
import { contextOverflow } from "../../proxy/dialects/context-overflow.ts";
import { endOf, failureOf, patience, sampleAll, textOf, tokensOf, withEngine } from "../contracts/engine-cases.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { forbidExtras, tensorrtLlmWire } from "../fakes/engines/scripted-tensorrt-llm.ts";
import { ScriptedWire } from "../fakes/engines/scripted-wire.ts";

test("vllm: a router that strips one of the two lists is told from a server that gives none", async () => {
  await withEngine("vllm", { text: "x", quirk: "router_strips_prompt" }, async (engine) => {
    assert.match((await engine.probe(patience())).missing ?? "", /no prompt ones.*router/s);
  });
});

test("vllm: a server that refuses to list the best tokens is asked without, and can be trained on", async () => {
  await withEngine("vllm", { text: "x", quirk: "refuses_top_logprobs" }, async (engine) => {
    const facts = await engine.probe(patience());
    assert.deepEqual([facts.missing, facts.logprobs, facts.logprob_semantics, facts.token_in], [null, true, null, true]);
  });
});

test("a server that leaves prompt ids out, and says nothing, is seen by the probe; one that turns to it later is misaligned", async () => {
  await using server = await ScriptedEngine.start(() => ({ text: "x" }));
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  server.takesPromptIds = false;
  const facts = await engine.probe(patience());
  assert.equal(facts.token_in, false);
  assert.match(facts.token_in_missing ?? "", /rendered the messages.*0\.32/);
  server.takesPromptIds = true;
  await engine.probe(patience());
  server.takesPromptIds = false;
  assert.match(
    endOf(await sampleAll(engine, { prompt_ids: IdText.of([7, 8, 9]) })).misaligned ?? "",
    /another prompt .* than asked \(3 ids\)/,
  );
  await engine.close();
});

test("vllm: ids that fill the context are refused as a conversation that does, and ids beside an image before they are lost", async () => {
  await withEngine("vllm", { text: "x" }, async (engine, server) => {
    const { max_model_len } = await engine.probe(patience());
    const full = await failureOf(sampleAll(engine, { prompt_ids: IdText.of(new Array<number>(max_model_len ?? 0).fill(7)) }));
    assert.deepEqual([full.code, full.status], ["context_length_exceeded", 400]);
    assert.deepEqual(contextOverflow(full.message), { tokens: "100001", maximum: "100000" });
    const image: Message = { role: "user", parts: [{ type: "image", url: "data:image/png;base64,AA==" }] };
    const lost = await failureOf(sampleAll(engine, { messages: [image], prompt_ids: IdText.of([7]) }));
    assert.deepEqual([lost.code, lost.param, server.requests.length], ["request_invalid", "prompt_ids", 0]);
  });
});

test("vllm: a chunk that comes twice cannot be told from two tokens, so the counts must say it", async () => {
  await withEngine("vllm", { text: "ab", quirk: "duplicated_first_chunk" }, async (engine) => {
    const events = await sampleAll(engine);
    assert.equal(tokensOf(events).ids.length, (endOf(events).usage.sampled_tokens ?? 0) + 1);
  });
});

test("vllm: a server that forbids our extra fields is named by the probe, and is text-only after it", async () => {
  await using server = await ScriptedWire.start(tensorrtLlmWire, forbidExtras({ text: "only text" }));
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  const facts = await engine.probe(patience());
  assert.deepEqual([facts.token_ids, facts.logprobs], [false, false]);
  assert.match(facts.missing ?? "", /return_token_ids.*Extra inputs are not permitted.*--kind/s);
  const events = await sampleAll(engine);
  assert.deepEqual([textOf(events, "text-delta"), tokensOf(events).ids], ["only text", []]);
  await engine.close();
});

test("a call that is cut off in its arguments keeps the beginning that was sampled, whatever the parser made up for it", async () => {
  const cases: [finish: string, text: string, parsed: string, told: RegExp][] = [
    ["length", '{"name": "rm", "arguments": {"path": "a', "{}", /^\{"path": "a/],
    ["length", '{"name": "rm", "arguments": {"path": "a', "", /^\{"path": "a/],
    ["length", '{"name": "rm", "arguments": {}}', "{}", /^\{\}$/],
    ["length", "<rm><path>a", "{}", /^\{\}$/],
    ["length", '{"name": "rm", "arguments": {"path": "a"}}', '{"path": "a"}', /^\{"path": "a"\}$/],
    ["tool_calls", '{"name": "rm", "arguments": {"path": "a', "{}", /^\{\}$/],
  ];
  for (const [finish_reason, text, parsed, told] of cases)
    await withEngine("vllm", { text, tool_calls: [{ name: "rm", arguments: parsed }], finish_reason }, async (engine) => {
      const call = (await sampleAll(engine)).find((event) => event.type === "tool-call");
      assert.match(call?.arguments ?? "none", told);
    });
});

test("vllm: where the probe sees that the server tells which weights sampled which tokens, every kind of turn asks for it", async () => {
  await using server = await ScriptedEngine.start(() => ({ text: "text" }));
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  try {
    const spans = [
      { version: "v1", start: 0, end: 2 },
      { version: "v2", start: 2, end: 5 },
    ];
    for (const [told, routing, weights] of [
      [spans, null, spans],
      [spans, "told", spans],
      [null, null, undefined],
    ] as const) {
      server.weightSpans = told && [...told];
      server.routing = routing;
      await engine.probe(patience());
      for (const fields of [{}, { live: true }, { prompt: { text: "ab" }, messages: [], tools: [] }]) {
        const end = endOf(await sampleAll(engine, fields));
        assert.deepEqual([end.weights, server.requests.at(-1)?.return_weight_versions], [weights, weights && true]);
      }
    }
    for (const wrong of [[], [{ version: 1, start: 0, end: 1 }], [{ version: "v1", start: -1, end: 1 }]]) {
      server.weightSpans = spans;
      await engine.probe(patience());
      server.weightSpans = wrong as typeof spans;
      assert.equal(endOf(await sampleAll(engine)).weights, undefined);
    }
  } finally {
    await engine.close();
  }
});
