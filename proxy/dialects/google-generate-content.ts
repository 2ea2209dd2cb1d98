/** Google generateContent: Gemini CLI, and programs on Google's SDKs. The address names the model and says whether to stream. */
import { mintToolCallId } from "../../base/schema/ids.ts";
import { type Address, type Dialect, type Route, toEvents } from "./dialect.ts";
import { candidates } from "./google-generate-content/candidates.ts";
import { googleError } from "./google-generate-content/error.ts";
import { labelsOfGenerateContent } from "./google-generate-content/labels.ts";
import { parseGenerateContent } from "./google-generate-content/parse.ts";
import { GenerateContentWriter } from "./google-generate-content/writer.ts";

/** A model's name may hold slashes and colons; the verb is what stands behind the last colon. */
const routesBelow = (version: string): Route[] => [
  { method: "POST", path: `/${version}/models/:call{.+:generateContent}`, kind: "generate" },
  { method: "POST", path: `/${version}/models/:call{.+:streamGenerateContent}`, kind: "generate" },
  { method: "POST", path: `/${version}/models/:call{.+:countTokens}`, kind: "count_tokens" },
];

export const googleGenerateContent: Dialect = {
  name: "google-generate-content",
  title: "Google generateContent",
  // `GET /v1/models` is answered in the other vendors' shape, because they have no other path for it.
  routes: [
    ...routesBelow("v1beta"),
    ...routesBelow("v1"),
    { method: "GET", path: "/v1beta/models", kind: "models" },
    { method: "GET", path: "/v1beta/models/:id{.+}", kind: "model" },
  ],
  cannot: [
    "Developer turns.",
    "Freeform tools.",
    "A tool result with text after an image: it is one text, and then images.",
    "That a tool result without a text is an error: an `error` that is empty is none.",
    "Reasoning, to a client that did not ask for it (`thinkingConfig.includeThoughts`).",
    "Spacing, key order and escapes of a tool call's arguments, which are an object here: restore finds the sampled text again by the call's id.",
    "Arguments that are no JSON object, or nest deeper than 200 levels: they go out as text and are flagged in `alidade.malformed_tool_calls`.",
    "The stop string that ended a turn.",
    "The bytes of tokens: `logprobsResult` has texts and ids, of every sampled token, those of thoughts, of calls and of the turn's end among them.",
  ],
  credential: [{ header: "x-goog-api-key" }, { query: "key" }, { header: "authorization", scheme: "Bearer" }],
  env: (base, key) => ({ GOOGLE_GEMINI_BASE_URL: base, GEMINI_API_KEY: key }),
  address,
  conversation: "contents",
  verbatim: ["args", "response"],
  parse: (body, _headers, _record, kind) => parseGenerateContent(body, kind),
  labels: labelsOfGenerateContent,
  answer(turn, context) {
    const writer = new GenerateContentWriter(context);
    for (const event of toEvents(turn, (index) => mintToolCallId(context.call_id, index))) writer.event(event);
    return writer.body();
  },
  writer: (context) => new GenerateContentWriter(context),
  error: googleError,
  several: candidates,
  countTokens: (count) => ({ totalTokens: count }),
  models: (models) => ({ models: models.map(modelOf) }),
  model: modelOf,
};

function address({ params, query }: Address): ReturnType<NonNullable<Dialect["address"]>> {
  const [, model, verb] = /^(.*):([^:]*)$/.exec(params.call ?? "") ?? [];
  return {
    fields: { model, stream: verb === "streamGenerateContent" },
    framing: query.alt === "sse" ? "sse" : "json-array",
  };
}

function modelOf(id: string): Record<string, unknown> {
  return {
    name: `models/${id}`,
    displayName: id,
    supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
  };
}
