/** Anthropic Messages: Claude Code, and harnesses pointed at an Anthropic base URL. */
import { mintToolCallId } from "../../base/schema/ids.ts";
import { anthropicError } from "./anthropic-messages/error.ts";
import { labelsOfMessages } from "./anthropic-messages/labels.ts";
import { parseAnthropic } from "./anthropic-messages/parse.ts";
import { MessagesWriter } from "./anthropic-messages/writer.ts";
import { type Dialect, toEvents } from "./dialect.ts";
import { modelBody, modelsBody } from "./models-body.ts";

export const anthropicMessages: Dialect = {
  name: "anthropic-messages",
  title: "Anthropic Messages",
  routes: [
    { method: "POST", path: "/v1/messages", kind: "generate" },
    { method: "POST", path: "/v1/messages/count_tokens", kind: "count_tokens" },
    // Claude Code with telemetry sends `HEAD` here first.
    { method: "GET", path: "/api/hello", kind: "hello" },
  ],
  cannot: [
    "Developer turns.",
    "Freeform tools.",
    "A system turn of several texts: they are joined by an empty line.",
    "Spacing, key order and escapes of a tool call's arguments, which are an object here: restore finds the sampled text again by the call's id.",
    "Arguments that are no JSON object, or nest deeper than 200 levels: they go out as text and are flagged in `alidade.malformed_tool_calls`.",
    "Logprobs: no field asks for them.",
  ],
  credential: [{ header: "x-api-key" }, { header: "authorization", scheme: "Bearer" }],
  env: (base, key) => ({ ANTHROPIC_BASE_URL: base, ANTHROPIC_API_KEY: key }),
  conversation: "messages",
  verbatim: ["input"],
  parse: (body, _headers, _record, kind) => parseAnthropic(body, kind),
  labels: labelsOfMessages,
  answer(turn, context) {
    const writer = new MessagesWriter(context);
    for (const event of toEvents(turn, (index) => mintToolCallId(context.call_id, index))) writer.event(event);
    return writer.body();
  },
  writer: (context) => new MessagesWriter(context),
  error: anthropicError,
  countTokens: (count) => ({ input_tokens: count }),
  models: modelsBody,
  model: modelBody,
};
