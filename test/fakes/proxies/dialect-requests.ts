/** The same request in each dialect: "hi", with a tool where there are any. */
import assert from "node:assert/strict";

export type DialectRequest = { path: string; body: Record<string, unknown> };

const parameters = { type: "object", properties: { command: { type: "string" } } };
const model = "scripted";

const requests: Record<string, (stream: boolean) => DialectRequest> = {
  "openai-chat": (stream) => ({
    path: "/v1/chat/completions",
    body: {
      model,
      stream,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: "hi" }],
      tools: [{ type: "function", function: { name: "bash", parameters } }],
    },
  }),
  "openai-responses": (stream) => ({
    path: "/v1/responses",
    body: { model, stream, input: "hi", tools: [{ type: "function", name: "bash", parameters }] },
  }),
  "anthropic-messages": (stream) => ({
    path: "/v1/messages",
    body: {
      model,
      stream,
      max_tokens: 100,
      messages: [{ role: "user", content: "hi" }],
      tools: [{ name: "bash", input_schema: parameters }],
    },
  }),
  "google-generate-content": (stream) => ({
    path: `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: {
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      tools: [{ functionDeclarations: [{ name: "bash", parametersJsonSchema: parameters }] }],
    },
  }),
  "openai-completions": (stream) => ({ path: "/v1/completions", body: { model, stream, prompt: "hi" } }),
};

export function dialectRequest(name: string, stream: boolean): DialectRequest {
  return requests[name]?.(stream) ?? assert.fail(`${name} has no request here: add one`);
}
