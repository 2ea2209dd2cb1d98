/** A Messages request as the neutral one. */
import { z } from "zod";
import type { Message, NeutralRequest, Sampling } from "../../../base/schema/message.ts";
import type { Route } from "../dialect.ts";
import { checked, invalid, isObject, present, rest } from "../edge.ts";
import { engineFields, engineKeys, parseEngineSampling } from "../engine-sampling.ts";
import { knownFields, omitted, unknownFields } from "../left-out/omitted.ts";
import { parseMessages, parseSystem } from "./messages.ts";
import { parseToolChoice, parseTools } from "./tools.ts";

const Body = z.looseObject({
  ...engineFields,
  model: z.string(),
  messages: z.array(z.unknown()).min(1),
  stream: z.boolean().nullish(),
  // Demanded by the real API; optional here, because counting tokens sends the same body without it.
  max_tokens: z.number().int().positive().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().int().nullish(),
  stop_sequences: z.array(z.string()).nullish(),
  output_config: z.looseObject({ effort: z.string().nullish() }).nullish(),
  thinking: z.looseObject({ type: z.string() }).nullish(),
});

const mapped = [
  "model",
  "messages",
  "system",
  "tools",
  "tool_choice",
  "stream",
  "max_tokens",
  "temperature",
  "top_p",
  "stop_sequences",
  ...engineKeys,
  // A name of `native` that says what was found out here: a field of the body under it means nothing.
  "deferred_tools",
];

/** Read below, and what says nothing to a model. */
const known = knownFields([
  ...mapped,
  ...["top_k", "output_config", "output_format", "thinking"],
  ...["betas", "cache_control", "inference_geo", "speed", "user_profile_id", "diagnostics"],
]);
const knownOutput = new Set(["effort", "format"]);
const knownThinking = new Set(["type", "display"]);

export function parseAnthropic(value: unknown, kind?: Route["kind"]): NeutralRequest {
  const body = checked(Body, value);
  const { messages, referenced } = parseMessages(body.messages);
  if (kind !== "count_tokens") refusePrefill(messages);
  const tools = parseTools(body.tools, referenced);
  const choice = parseToolChoice(body.tool_choice, tools.tools);
  return {
    model: body.model,
    messages: [...parseSystem(body.system, "system"), ...messages],
    tools: tools.tools,
    tool_choice: choice.tool_choice,
    sampling: { ...parseSampling(body), ...(choice.single && { parallel_tool_calls: false }) },
    stream: body.stream ?? false,
    native: {
      ...rest(body, mapped),
      ...(tools.deferred.length > 0 && { deferred_tools: tools.deferred }),
    },
    ...omitted({ tools: tools.hosted, fields: [...tools.fields, ...leftOut(body)] }),
  };
}

function leftOut(body: z.output<typeof Body>): string[] {
  return [
    ...unknownFields(body, known),
    ...unknownFields(body.output_config, knownOutput, "output_config"),
    ...unknownFields(body.thinking, knownThinking, "thinking"),
  ];
}

/** To go on with the assistant's own last words is another request than to answer: sampled as a new turn it would be wrong. */
function refusePrefill(messages: Message[]): void {
  if (messages.at(-1)?.role === "assistant")
    throw invalid("messages", "the last message is the assistant's, and continuing it (prefill) is not supported; end with a user message");
}

function parseSampling(body: z.output<typeof Body>): Sampling {
  return {
    ...parseEngineSampling(body),
    ...present({
      max_tokens: body.max_tokens,
      temperature: body.temperature,
      top_p: body.top_p,
      stop: body.stop_sequences?.length ? body.stop_sequences : undefined,
      reasoning_effort: body.thinking?.type === "disabled" ? "none" : body.output_config?.effort,
      response_format: responseFormat(body.output_config?.format ?? body.output_format),
    }),
  };
}

/** In the shape that engines take, which wants a name. */
function responseFormat(format: unknown): unknown {
  return isObject(format) && format.type === "json_schema"
    ? { type: "json_schema", json_schema: { name: "output", schema: format.schema } }
    : undefined;
}
