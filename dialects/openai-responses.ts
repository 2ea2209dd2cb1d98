/** OpenAI Responses: Codex's only dialect, in its stateless form (the whole history in every request). */
import { mintToolCallId } from "../schema/ids.ts";
import { type Dialect, toEvents } from "./dialect.ts";
import { openaiError } from "./openai-error.ts";
import { labelsOfResponses } from "./openai-responses/labels.ts";
import { parseResponses } from "./openai-responses/parse.ts";
import { ResponsesWriter } from "./openai-responses/writer.ts";

export const openaiResponses: Dialect = {
  name: "openai-responses",
  title: "OpenAI Responses",
  routes: [
    { method: "POST", path: "/v1/responses", kind: "generate" },
    { method: "GET", path: "/v1/responses", kind: "websocket" },
  ],
  credential: [{ header: "authorization", scheme: "Bearer" }],
  env: (base, key) => ({ OPENAI_BASE_URL: `${base}/v1`, OPENAI_API_KEY: key }),
  parse: (body) => parseResponses(body),
  labels: labelsOfResponses,
  answer(turn, context) {
    const writer = new ResponsesWriter(context);
    for (const event of toEvents(turn, (index) => mintToolCallId(context.call_id, index))) writer.event(event);
    return writer.body();
  },
  writer: (context) => new ResponsesWriter(context),
  error: openaiError,
};
