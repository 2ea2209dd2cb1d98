/**
 * OpenAI Completions, the legacy ones: a prompt as it stands, text or token ids, and the text that follows it. For
 * programs that put their own template around a conversation; there are no messages here and no tools.
 */
import { mintToolCallId } from "../../base/schema/ids.ts";
import { type Dialect, toEvents } from "./dialect.ts";
import { choices } from "./openai/choices.ts";
import { openaiError } from "./openai/error.ts";
import { parseCompletion } from "./openai-completions/parse.ts";
import { CompletionWriter } from "./openai-completions/writer.ts";
import { callLabels } from "./request-labels.ts";

export const openaiCompletions: Dialect = {
  name: "openai-completions",
  title: "OpenAI Completions (legacy)",
  routes: [{ method: "POST", path: "/v1/completions", kind: "generate" }],
  cannot: [
    "Messages, roles, images, tools, tool results: there is a prompt, and the text that follows it.",
    "Reasoning apart from text.",
    "An opaque value, or an id of ours: a prompt that continues an answer is known by its tokens.",
    "The stop string that ended a turn.",
    "The ids and bytes of tokens: `logprobs` has texts, the one of the turn's end among them.",
  ],
  credential: [{ header: "authorization", scheme: "Bearer" }],
  env: (base, key) => ({ OPENAI_BASE_URL: `${base}/v1`, OPENAI_API_KEY: key }),
  parse: (body) => parseCompletion(body),
  several: choices({ prompts: true }),
  labels: (headers, body) => callLabels("main", "main", headers, body),
  answer(turn, context) {
    const writer = new CompletionWriter(context);
    for (const event of toEvents(turn, (index) => mintToolCallId(context.call_id, index))) writer.event(event);
    return writer.body();
  },
  writer: (context) => new CompletionWriter(context),
  error: openaiError,
};
