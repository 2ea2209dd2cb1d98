import assert from "node:assert/strict";
import { test } from "node:test";
import { need } from "../../needs.ts";
import { startVllm } from "./start.ts";

test("a real vLLM gives prompt ids, sampled ids and their logprobs", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await using vllm = await startVllm(t.signal);
  const response = await fetch(`${vllm.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: vllm.model,
      messages: [{ role: "user", content: "Look around." }],
      tools: [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }],
      max_tokens: 64,
      logprobs: true,
      return_token_ids: true,
      structured_outputs: { regex: String.raw`<tool_call>\n\{"name": "bash", "arguments": \{"command": "(ls|pwd)"\}\}\n</tool_call>` },
    }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: another server's reply, looked at once
  const reply = (await response.json()) as any;
  assert.equal(response.status, 200, JSON.stringify(reply));
  const [choice] = reply.choices;
  assert.equal(choice.finish_reason, "tool_calls");
  assert.match(choice.message.tool_calls[0].function.arguments, /ls|pwd/);
  assert.ok(reply.prompt_token_ids.length > 20);
  assert.equal(choice.token_ids.length, choice.logprobs.content.length);
});
