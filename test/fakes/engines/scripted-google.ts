/** Google's generateContent, streamed with `alt=sse`. */

import { readJson } from "../../../base/schema/read-json.ts";
import type { Wire } from "./scripted-wire.ts";

export const googleWire: Wire = {
  generates: (path) => path.endsWith(":streamGenerateContent"),
  ask(path) {
    if (path.endsWith("/models")) return { models: [{ name: "models/scripted" }] };
    return path.endsWith(":countTokens") ? { totalTokens: 12 } : undefined;
  },
  answer(_body, reply) {
    const parts = [
      ...(reply.reasoning ? [{ text: reply.reasoning, thought: true }] : []),
      ...(reply.text ? [{ text: reply.text }] : []),
      ...(reply.tool_calls ?? []).map((call, at) => ({
        functionCall: { id: call.id ?? `f${at}`, name: call.name, args: readJson(call.arguments) as unknown },
      })),
    ];
    const frames = parts.map((part) => frame({ candidates: [{ content: { role: "model", parts: [part] } }], modelVersion: "scripted" }));
    const finishReason = reply.finish_reason === "length" ? "MAX_TOKENS" : "STOP";
    const usageMetadata = { promptTokenCount: 12, cachedContentTokenCount: 2, candidatesTokenCount: 5, thoughtsTokenCount: 3 };
    frames.push(frame({ candidates: [{ content: { role: "model", parts: [] }, finishReason }], modelVersion: "scripted", usageMetadata }));
    return { frames };
  },
  refusal: (status, message, retryAfter) => ({
    error: {
      code: status,
      message,
      status: "INVALID_ARGUMENT",
      ...(retryAfter && { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${retryAfter}s` }] }),
    },
  }),
};

function frame(chunk: unknown): string {
  return `data: ${JSON.stringify(chunk)}\r\n\r\n`;
}
