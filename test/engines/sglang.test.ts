/** What is SGLang's alone, over its wire as scripted; SGLang itself is met in test/e2e/sglang-engine.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { Prompt } from "../../base/schema/message.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { endOf, failureOf, patience, request, sampleAll, textOf, tokensOf, withEngine } from "../contracts/engine-cases.ts";
import { logprobOf, said } from "../fakes/engines/scripted-engine.ts";
import type { ScriptedWire } from "../fakes/engines/scripted-wire.ts";

test("sglang: what does not belong together is said, whatever it is, and nothing is made up for it", async () => {
  for (const [quirk, said] of [
    ["one_pair_less", /logprobs and .* response_token_ids/],
    ["other_ids", /logprobs of other ids/],
    ["counts_one_more", /completion tokens and/],
  ] as const)
    await withEngine("sglang", { text: "text", quirk }, async (engine) => {
      assert.match(endOf(await sampleAll(engine)).misaligned ?? "", said, quirk);
    });
  await withEngine("sglang", { text: "text", quirk: "one_minus_9999" }, async (engine) => {
    assert.deepEqual(tokensOf(await sampleAll(engine)).logprobs[0], null);
  });
});

test("sglang: a router that strips ids is named by the probe", async () => {
  for (const quirk of ["router_strips_meta", "router_strips_prompt"] as const)
    await withEngine("sglang", { text: "x", quirk }, async (engine) => {
      assert.match((await engine.probe(patience())).missing ?? "", /router strips.*worker itself/s);
    });
});

test("sglang: logprobs are processed, ids can be given, and the weights that sampled are named", async () => {
  await withEngine("sglang", { text: "text" }, async (engine, server) => {
    const facts = await engine.probe(patience());
    assert.deepEqual(
      [facts.logprob_semantics, facts.grammar_logprobs, facts.token_in, facts.weight_version],
      ["processed", "masked", true, "w7"],
    );
    const events = await sampleAll(engine, {
      prompt_ids: IdText.of([5, 6, 7]),
      sampling: { top_k: 0, structured_outputs: { choice: ["a.b", "c"] } },
    });
    const sent = server.requests.at(-1);
    assert.deepEqual([sent?.input_ids, sent?.top_k, sent?.regex, sent?.stream], [[5, 6, 7], -1, "(a\\.b|c)", false]);
    assert.deepEqual(endOf(events).weights, [
      { version: "w6", start: 0, end: 2 },
      { version: "w7", start: 2, end: null },
    ]);
  });
});

test("sglang: a prompt without a template is text or ids, and its answer is text that no parser has seen", async () => {
  const reply = { text: "plain", tool_calls: [{ name: "bash", arguments: "{}" }] };
  await withEngine("sglang", reply, async (engine, server) => {
    for (const [prompt, ids] of [
      [{ text: "ab" }, [97, 98]],
      [{ token_ids: [7, 8, 9] }, [7, 8, 9]],
    ] as const) {
      const sampling = { max_tokens: 5, seed: 3, top_k: 0, structured_outputs: { json: { type: "object" } } };
      const events = await sampleAll(engine, { prompt: prompt as Prompt, messages: [], tools: [], sampling });
      assert.deepEqual(server.requests.at(-1)?.sampling_params, {
        top_k: -1,
        json_schema: '{"type":"object"}',
        max_new_tokens: 5,
        sampling_seed: 3,
      });
      assert.deepEqual(events.find((event) => event.type === "prompt")?.token_ids, ids);
      // What the vocabulary does not have is refused by this field, before it ends the server.
      assert.deepEqual(server.requests.at(-1)?.token_ids_logprob, "text" in prompt ? undefined : [9]);
      assert.deepEqual([textOf(events, "text-delta"), events.some((event) => event.type === "tool-call")], [said(reply), false]);
      assert.deepEqual(
        tokensOf(events).logprobs,
        tokensOf(events).ids.map((id, at) => logprobOf(id, ids.length + at)),
      );
      assert.deepEqual([endOf(events).finish_reason, endOf(events).misaligned], ["stop", undefined]);
    }
  });
});

test("sglang: a caller that leaves is told to the server by name too", async () => {
  await withEngine("sglang", { text: "late", before: new Promise(() => undefined) }, async (engine, server) => {
    const leave = new AbortController();
    const sampled = Array.fromAsync(engine.sample(request({ call_id: "call9" }), leave.signal));
    const limit = patience();
    while (server.requests.length === 0) await sleep(5, undefined, { signal: limit });
    leave.abort(new AlidadeError("cancelled", "enough"));
    await failureOf(sampled);
    const { abortRequests } = server as ScriptedWire;
    while (abortRequests.length === 0) await sleep(5, undefined, { signal: limit });
    assert.deepEqual(abortRequests, [{ rid: "call9" }]);
  });
});
