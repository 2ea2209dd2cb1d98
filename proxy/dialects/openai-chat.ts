/** OpenAI Chat Completions: what most harnesses and nearly every library speak. */
import { mintToolCallId } from "../../base/schema/ids.ts";
import { type Dialect, toEvents } from "./dialect.ts";
import { modelBody, modelsBody } from "./models-body.ts";
import { choices } from "./openai/choices.ts";
import { openaiError } from "./openai/error.ts";
import { labelsOfChat } from "./openai-chat/labels.ts";
import { parseChat } from "./openai-chat/parse.ts";
import { ChatWriter } from "./openai-chat/writer.ts";

export const openaiChat: Dialect = {
  name: "openai-chat",
  title: "OpenAI Chat Completions",
  routes: [
    { method: "POST", path: "/v1/chat/completions", kind: "generate" },
    { method: "GET", path: "/v1/models", kind: "models" },
    { method: "GET", path: "/v1/models/:id{.+}", kind: "model" },
  ],
  cannot: [
    "The order of reasoning, text and calls in a turn: it is always this one.",
    "An opaque value beside reasoning: a turn that comes back is known by its call ids, or else by its text.",
    "The `name` of an assistant message: the model does not see which of several assistants wrote a turn.",
    "That a tool result is an error.",
    "The stop string that ended a turn.",
    "Token ids: `logprobs` has texts and bytes, of every sampled token, those of reasoning, of calls and of the turn's end among them.",
  ],
  credential: [{ header: "authorization", scheme: "Bearer" }],
  env: (base, key) => ({ OPENAI_BASE_URL: `${base}/v1`, OPENAI_API_KEY: key }),
  conversation: "messages",
  verbatim: ["arguments"],
  parse: (body) => parseChat(body),
  several: choices({ prompts: false }),
  labels: labelsOfChat,
  answer(turn, context) {
    const writer = new ChatWriter(context);
    for (const event of toEvents(turn, (index) => mintToolCallId(context.call_id, index))) writer.event(event);
    return writer.body();
  },
  writer: (context) => new ChatWriter(context),
  error: openaiError,
  models: modelsBody,
  model: modelBody,
};
