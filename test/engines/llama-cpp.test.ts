/** What is llama-server's alone, over its wire as scripted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TokenTexts } from "../../engines/index.ts";
import { endOf, patience, sampleAll, tokensOf, withEngine } from "../contracts/engine-cases.ts";
import { encode, endOfTurn, said } from "../fakes/engines/scripted-engine.ts";

test("llama-cpp: logprobs missing inside characters are null, at exactly those tokens", async () => {
  const text = "aé日a";
  await withEngine("llama-cpp", { text }, async (engine) => {
    const { ids, logprobs } = tokensOf(await sampleAll(engine));
    assert.deepEqual(ids, [...encode(said({ text })), endOfTurn]);
    assert.deepEqual(
      logprobs.map((logprob) => logprob === null),
      [false, true, true, false, false],
    );
  });
});

test("llama-cpp: a prompt that was truncated, or is not what the server counted, is said", async () => {
  for (const [quirk, saying] of [
    ["truncated", /truncated/],
    ["prompt_of_other_length", /prompt tokens and a prompt of/],
    ["other_ids", /logprobs of other ids/],
  ] as const)
    await withEngine("llama-cpp", { text: "text", quirk }, async (engine) => {
      assert.match(endOf(await sampleAll(engine)).misaligned ?? "", saying, quirk);
    });
  await withEngine("llama-cpp", { text: "x", quirk: "router_strips_verbose" }, async (engine) => {
    assert.match((await engine.probe(patience())).missing ?? "", /router/);
  });
});

test("llama-cpp: texts of new tokens are told, but none of those inside characters", async () => {
  const texts = new Map<number | null, string | null>();
  await withEngine("llama-cpp", { text: "aé日a" }, async (engine) => {
    const keep: TokenTexts["keep"] = (tokens) => {
      for (const { id, text, bytes } of tokens) texts.set(id, bytes && text);
    };
    const events = await sampleAll(engine, { texts: { lacks: (id) => !texts.has(id), keep } });
    assert.equal(texts.get(97), "a");
    assert.deepEqual([texts.get(233), texts.get(0x65e5)], [null, null]);
    assert.ok(events.every((event) => event.type !== "tokens" || event.tokens === undefined));
  });
});
