/** The sglang engine against what a real SGLang 0.5.23 said (test/interop/sglang/record.ts), word for word. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { Engine, SampleEvent } from "../../engines/engine.ts";
import { engineNamed } from "../../engines/registry.ts";
import { RoutingOptions, whyRowsAreLost } from "../../engines/sglang/routing.ts";
import { type Exchange, replaying } from "../interop/sglang/exchanges.ts";
import { ask, texts } from "../interop/sglang/questions.ts";

const exchanges = JSON.parse(
  await readFile(join(import.meta.dirname, "../interop/sglang/recorded-0.5.23.json"), "utf8"),
) as readonly Exchange[];

async function withRecording(body: (engine: Engine, signal: AbortSignal) => Promise<void>): Promise<void> {
  await using server = await replaying(exchanges);
  const engine = engineNamed("sglang").create({ baseUrl: server.url, apiKey: null });
  try {
    await body(engine, AbortSignal.timeout(20_000));
  } finally {
    await engine.close();
  }
}

test("the probe finds what the real server can do", async () => {
  await withRecording(async (engine, signal) => {
    const facts = await engine.probe(signal);
    assert.deepEqual(
      [facts.version, facts.models, facts.max_model_len, facts.token_ids, facts.logprobs, facts.missing],
      ["0.5.23", ["tiny"], 8192, true, true, null],
    );
    assert.equal(facts.logprob_semantics, "processed");
    assert.equal(facts.grammar_logprobs, "masked");
    assert.equal(facts.weight_version, "default");
    assert.ok(facts.fingerprints?.template && facts.fingerprints.tokenizer);
  });
});

for (const name of ["text", "a tool call", "a tool's result"])
  test(`${name}: ids, logprobs and counts of the real answer belong together, and nothing of it is lost`, async () => {
    await withRecording(async (engine, signal) => {
      await engine.probe(signal);
      const answer = await ask(engine, "tiny", name, signal);
      assert.ok("events" in answer, JSON.stringify(answer));
      const of = <Type extends SampleEvent["type"]>(type: Type) =>
        answer.events.filter((event): event is Extract<SampleEvent, { type: Type }> => event.type === type);
      const [end] = of("end");
      const ids = of("tokens").flatMap((event) => event.token_ids);
      const logprobs = of("tokens").flatMap((event) => event.logprobs);
      assert.equal(end?.misaligned, undefined);
      assert.deepEqual([ids.length, logprobs.length], [end?.usage.sampled_tokens, end?.usage.sampled_tokens]);
      assert.ok(logprobs.every((one) => one !== null && Number.isFinite(one) && one <= 0));
      assert.equal(of("prompt")[0]?.token_ids.length, end?.usage.prompt_tokens);
      assert.deepEqual(end?.weights?.map((span) => span.version) ?? ["default"], ["default"]);
      if (name !== "a tool call") return;
      const [call] = of("tool-call");
      assert.deepEqual([call?.name, end?.finish_reason], ["bash", "tool_calls"]);
      assert.match(call?.arguments ?? "", /^\{"command": "ls( -l)?"\}$/);
      assert.ok(logprobs.includes(0), "what the grammar forced has no choice in it");
    });
  });

test("a prompt that is too long is the policy's own doing, in the real server's words", async () => {
  await withRecording(async (engine, signal) => {
    await engine.probe(signal);
    const answer = await ask(engine, "tiny", "too long", signal);
    assert.ok("error" in answer);
    assert.deepEqual([answer.error.code, answer.error.status], ["context_length_exceeded", 400]);
  });
});

test("the real tokenizer's ids are text again, characters of several bytes too", async () => {
  await withRecording(async (engine, signal) => {
    for (const text of texts) {
      const ids = (await engine.tokenize?.("tiny", { text }, signal)) ?? assert.fail("it tokenizes");
      if (text !== "") assert.equal(await engine.detokenize?.("tiny", ids, signal), text);
      else assert.deepEqual(ids, []);
    }
  });
});

test("the real server names the options that decide whether its experts can be read", () => {
  const info = exchanges.find(({ path }) => path === "/get_server_info")?.response;
  assert.equal(whyRowsAreLost(RoutingOptions.parse(info)), null);
  const names = Object.keys(info ?? {}).filter((name) => name in RoutingOptions.shape);
  assert.deepEqual(names.sort(), Object.keys(RoutingOptions.shape).sort());
});
