/** What the tests of the vllm engine ask vLLM for, and how they read its answers. */
import assert from "node:assert/strict";
import type { Engine, SampleEvent, SampleRequest } from "../../engines/engine.ts";
import { engineNamed } from "../../engines/index.ts";
import { startVllm, type Vllm } from "../interop/vllm/start.ts";

/** Sampled and scored in float32 by the same server, in batches of other shapes. */
export const tolerance = 1e-4;

export const bashTool = {
  name: "bash",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  kind: "function" as const,
};
export const neutral = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1 };

export function request(vllm: Vllm, fields: Partial<SampleRequest>): SampleRequest {
  return {
    model: vllm.model,
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

type Scored = Record<string, { logprob: number }> | null;

/** The logprob of each of `ids` after those before it, from a prefill and not from sampling. */
export async function score(vllm: Vllm, ids: number[], signal: AbortSignal): Promise<Scored[]> {
  const response = await fetch(`${vllm.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: vllm.model, prompt: ids, max_tokens: 1, temperature: 0, prompt_logprobs: 0 }),
    signal,
  });
  const answer = (await response.json()) as { choices?: { prompt_logprobs?: Scored[] }[] };
  return answer.choices?.[0]?.prompt_logprobs ?? assert.fail(JSON.stringify(answer).slice(0, 500));
}
