/** OpenAI Responses: Codex's only dialect. Sent whole, or continued from what the session's record keeps. */
import type { Dialect } from "./dialect.ts";
import { openaiError } from "./openai/error.ts";
import { answerOf } from "./openai-responses/answer.ts";
import { asCompaction, asNoCompaction } from "./openai-responses/compaction.ts";
import { labelsOfResponses } from "./openai-responses/labels.ts";
import { parseResponses } from "./openai-responses/parse.ts";
import { answerFromRecord, recordRoutes } from "./openai-responses/record.ts";
import { ResponsesWriter } from "./openai-responses/writer.ts";

export const openaiResponses: Dialect = {
  name: "openai-responses",
  title: "OpenAI Responses",
  routes: [
    { method: "POST", path: "/v1/responses", kind: "generate", fields: asNoCompaction },
    { method: "POST", path: "/v1/responses/compact", kind: "generate", fields: asCompaction },
    { method: "POST", path: "/v1/responses/input_tokens", kind: "count_tokens", fields: asNoCompaction },
    { method: "GET", path: "/v1/responses", kind: "websocket" },
    ...recordRoutes,
  ],
  cannot: [
    "That a tool result is an error.",
    "The stop string that ended a turn.",
    "Token ids, and the logprobs of reasoning and calls: `logprobs` stands with a text, and in a stream in the events that close that text.",
  ],
  credential: [{ header: "authorization", scheme: "Bearer" }],
  env: (base, key) => ({ OPENAI_BASE_URL: `${base}/v1`, OPENAI_API_KEY: key }),
  conversation: "input",
  parse: (body, _headers, record) => parseResponses(body, record),
  labels: labelsOfResponses,
  answer: answerOf,
  writer: (context) => new ResponsesWriter(context),
  error: openaiError,
  countTokens: (count) => ({ object: "response.input_tokens", input_tokens: count }),
  answerFromRecord,
};
