import assert from "node:assert/strict";
import { test } from "node:test";
import { isAtRest, isMisread, type KeptTokens, keepTokens, type Mark } from "../../../proxy/calls/interrupted/kept-tokens.ts";
import { Sample } from "../../../proxy/calls/sample.ts";
import type { EngineLease } from "../../../proxy/pool/engine-lease.ts";
import { promptTokens } from "../../../proxy/session/prompt-tokens.ts";

test("a parser is at rest where all that was sampled was said, apart from the tags around a thought", () => {
  for (const [sampled, reasoning, text] of [
    ["Look here", "", "Look here"],
    ["<think>\nhm", "hm", ""],
    ["hm", "hm", ""],
    ["<think>\nhm\n</think>\n\nLook", "hm", "Look"],
    ["[THINK]hm[/THINK]Look", "hm", "Look"],
  ] as const)
    assert.ok(isAtRest(sampled, { reasoning, text }), sampled);
  for (const [sampled, reasoning, text] of [
    ["", "", ""],
    ["Look <tool", "", "Look "],
    ['Look <tool_call>\n{"name"', "", "Look "],
    ['<tool_call>\n{"name": "x", "arguments": {}}\n</tool_call>\nLook', "", "Look"],
    ['<tool_call>{"name"', "", ""],
    ["<think>\nhm</thi", "hm", ""],
    ["caf\ufffd", "", "caf"],
  ] as const)
    assert.ok(!isAtRest(sampled, { reasoning, text }), sampled);
});

test("tokens are kept up to the last place at which the parser was at rest", async () => {
  const sampled = 'Look at it. <tool_call>{"name": "bash"';
  const said = "Look at it. ";
  // A token a character, four in a chunk; text that may begin a tag is held back.
  const marks = Array.from({ length: Math.ceil(sampled.length / 4) }, (_, at): Mark => {
    const ids = Math.min(sampled.length, 4 * (at + 1));
    return { ids, reasoning: 0, text: Math.min(ids, said.length) };
  });
  const kept = await keepTokens(
    {
      marks,
      idsUntil: ({ ids }) => Array.from(sampled.slice(0, ids), (character) => character.charCodeAt(0)),
      saidUntil: ({ text }) => ({ reasoning: "", text: said.slice(0, text) }),
      keep: ({ ids }) => ({ ids: Array.from({ length: ids }, () => 0) }) as KeptTokens,
    },
    {
      model: "m",
      engine: { detokenize: async (_: string, ids: number[]) => String.fromCharCode(...ids) },
    } as unknown as EngineLease,
  );
  assert.equal(kept?.ids.length, said.length);
});

test("a parser that takes the rest of a thought for words, or of words for a thought, has misread it", () => {
  const [text, reasoning] = [[{ type: "text" as const, text: "a" }], [{ type: "reasoning" as const, text: "a" }]];
  assert.ok(isMisread(reasoning, "text", "more of it", "more of it</think>Look"));
  assert.ok(isMisread(text, "reasoning", "more", "more"));
  assert.ok(!isMisread(reasoning, "text", "Look", "</think>Look"));
  assert.ok(!isMisread(reasoning, "reasoning", "more", "more"));
  assert.ok(!isMisread(text, "tool_call", "", "<tool_call>"));
});

test("weight spans that an engine reports are moved behind the kept tokens of the call", () => {
  const kept: KeptTokens = {
    prompt: promptTokens([], { token_ids: [1, 2] }),
    ...{ ids: [3, 4, 5], logprobs: [-1, -1, -1], tokens: [], support: [], parts: [{ type: "text", text: "abc" }] },
  };
  const resultBehind = (before: KeptTokens | null) => {
    const sample = new Sample(null, { sampling: {}, messages: [], tools: [], tool_choice: "auto" }, [], before);
    const weights = [
      { version: "v2", start: 0, end: 2 },
      { version: "v3", start: 2, end: null },
    ];
    const usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };
    sample.take({ type: "end", finish_reason: "stop", stop: null, usage, engine_model: "m", weights });
    return sample.result(null, []).weights?.map(({ start, end }) => [start, end]);
  };
  assert.deepEqual(resultBehind(null), [
    [0, 2],
    [2, null],
  ]);
  assert.deepEqual(resultBehind(kept), [
    [3, 5],
    [5, null],
  ]);
});
