/** What the tests of real servers ask for, and how they read the answers. */
import assert from "node:assert/strict";
import { request as undici } from "undici";
import type { Engine, SampleEvent, SampleRequest } from "../../engines/engine.ts";
import { engineNamed } from "../../engines/registry.ts";
import { startVllm, type Vllm } from "../interop/vllm/start.ts";

/** Sampled and scored in float32 by the same server, in batches of other shapes. */
export const tolerance = 1e-4;

export const bashTool = {
  name: "bash",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  kind: "function" as const,
};
export const neutral = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1 };

export function request(served: Pick<Vllm, "model">, fields: Partial<SampleRequest>): SampleRequest {
  return {
    model: served.model,
    messages: [{ role: "user", parts: [{ type: "text", text: "Tell me about the sea." }] }],
    tools: [],
    tool_choice: null,
    sampling: { ...neutral, max_tokens: 64 },
    call_id: `call${Math.random().toString(36).slice(2)}`,
    ...fields,
  };
}

export async function withVllm(signal: AbortSignal, body: (engine: Engine, vllm: Vllm) => Promise<void>): Promise<void> {
  await using vllm = await startVllm(signal);
  const engine = engineNamed("vllm").create({ baseUrl: vllm.url, apiKey: null });
  try {
    await body(engine, vllm);
  } finally {
    await engine.close();
  }
}

export type ReadTurn = ReturnType<typeof read>;

export function read(events: SampleEvent[]) {
  const tokens = events.filter((event) => event.type === "tokens");
  const end = events.at(-1);
  assert.ok(end?.type === "end");
  const textOf = (type: "text-delta" | "reasoning-delta") => events.map((event) => (event.type === type ? event.text : "")).join("");
  return {
    prompt: [...(events.find((event) => event.type === "prompt")?.token_ids ?? [])],
    ids: tokens.flatMap((event) => [...event.token_ids]),
    logprobs: tokens.flatMap((event) => [...event.logprobs]),
    text: textOf("text-delta"),
    reasoning: textOf("reasoning-delta"),
    calls: events.filter((event) => event.type === "tool-call"),
    end,
  };
}

const call = (json: string): string => `<tool_call>\n${json}\n</tool_call>`;
const bash = (args: string, name = "bash"): string => call(`{"name": "${name}", "arguments": ${args}}`);
const ls = bash('{"command": "ls"}');

/** What models say, well and badly: each is forced on the model, and cut off at several lengths. */
export const forcedTurns: Record<string, string> = {
  text: "The sea is blue.",
  "text of many bytes": "naïve 日本 🦀",
  "one call": ls,
  "a call in its own spacing": bash('{"command":  "ls",   "x":1.0}'),
  "escapes in a call": bash('{"command": "echo \\"naïve\\" \\u00e9\\n日本"}'),
  "parallel calls": `${ls}\n${bash('{"command": "pwd"}')}`,
  "parallel calls without a break": ls + bash('{"command": "pwd"}'),
  "text before a call": `I will look.\n${ls}`,
  "text between calls": `${ls}\nand then\n${bash('{"command": "pwd"}')}`,
  "text after a call": `${ls}\nThat was it.`,
  "thinking and text": "<think>\nI look.\n</think>\n\nFine.",
  "thinking and a call": `<think>\nI look.\n</think>\n\n${ls}`,
  "thinking that does not end": "<think>\nI look and look",
  "a call while thinking": `<think>\n${ls}\n</think>\n\nFine.`,
  "an unknown tool": bash('{"command": "ls"}', "rm"),
  "arguments that are a string": bash('"ls"'),
  "arguments that are null": bash("null"),
  "a call without arguments": call('{"name": "bash"}'),
  "a call that is no JSON": bash('{"command": ls}'),
  "a call with a brace too few": call('{"name": "bash", "arguments": {"command": "ls"}'),
  "a call that does not end": '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}',
  "a bad call, then a good one": `${call('{"name": "bash", oops}')}\n${ls}`,
  "a good call, then a bad one": `${ls}\n${call('{"name": "bash", oops}')}`,
  "a closing tag in an argument": bash('{"command": "echo </tool_call>"}'),
  "nothing but an opening tag": "<tool_call>",
  "an empty call": "<tool_call>\n</tool_call>",
  blanks: " \n",
};

/** What a turn came to, whatever tokens spell it. */
export const said = ({ text, reasoning, calls, end }: ReadTurn) => ({
  text,
  reasoning,
  calls: calls.map(({ name, arguments: args }) => [name, args]),
  finish: [end.finish_reason, end.stop],
});

type Scored = Record<string, { logprob: number }> | null;

/** The logprob of each of `ids` after those before it, from a prefill and not from sampling. */
export async function score(vllm: Vllm, ids: number[], signal: AbortSignal): Promise<Scored[]> {
  // Each over a connection of its own: vLLM closes idle ones after 5 s, and may do so just when one is used again.
  const { body } = await undici(`${vllm.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: vllm.model, prompt: ids, max_tokens: 1, temperature: 0, prompt_logprobs: 0 }),
    reset: true,
    signal,
  });
  const answer = (await body.json()) as { choices?: { prompt_logprobs?: Scored[] }[] };
  return answer.choices?.[0]?.prompt_logprobs ?? assert.fail(JSON.stringify(answer).slice(0, 500));
}

/** The tokens of a text are those that `tokenize` gives, and their bytes together are the text. */
export async function assertSpells(engine: Engine, model: string, signal: AbortSignal): Promise<void> {
  const text = "<|im_start|>user\nMend the café: 日本 🦀.\n\n  return x<|im_end|>\n";
  const spelled = (await engine.spell?.(model, text, signal)) ?? assert.fail("it tells no pieces");
  assert.deepEqual(
    spelled.map(({ id }) => id),
    await engine.tokenize?.(model, { text }, signal),
  );
  assert.equal(Buffer.concat(spelled.map(({ bytes }) => bytes)).toString("utf8"), text);
}
