/** A chat completions request as the neutral one. */
import { z } from "zod";
import type { Message, NeutralRequest, Sampling } from "../../../base/schema/message.ts";
import { checked, invalid, isObject, present, rest } from "../edge.ts";
import { knownFields, omitted, unknownFields } from "../left-out/omitted.ts";
import { Alternatives } from "../openai/logprobs.ts";
import { parseSampling, samplingFields, samplingKeys } from "../openai/sampling.ts";
import { parseMessages } from "./messages.ts";
import { parseToolChoice, parseTools } from "./tools.ts";

const Body = z.looseObject({
  ...samplingFields,
  model: z.string(),
  messages: z.array(z.unknown()).min(1),
  stream: z.boolean().nullish(),
  max_completion_tokens: z.number().int().positive().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning_effort: z.string().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: Alternatives,
});

const mapped = [
  ...["model", "messages", "stream", "tools", "functions", "tool_choice", "function_call", "max_completion_tokens"],
  ...["parallel_tool_calls", "reasoning_effort"],
  ...samplingKeys,
  // Names of `native` that say what was found out here: a field of the body under one of them means nothing.
  ...["reasoning_field", "choice"],
];

/** Read or refused below, and by `choices.ts`. */
const known = knownFields([
  ...mapped,
  ...["n", "logprobs", "top_logprobs", "web_search_options", "reasoning", "thinking", "modalities"],
  ...["best_of", "use_beam_search", "continue_final_message", "echo", "add_generation_prompt"],
]);
/** How much of its thoughts an answer shows is no matter of the model's. */
const knownReasoning = new Set(["effort", "exclude", "enabled", "summary"]);
const knownThinking = new Set(["type"]);

export function parseChat(value: unknown): NeutralRequest {
  const body = checked(Body, value);
  refuseUnsupported(body);
  const messages = parseMessages(body.messages);
  const { tools, hosted } = parseTools(body.tools, body.web_search_options);
  const choice = parseToolChoice(body.tool_choice, tools);
  return {
    model: body.model,
    messages,
    tools: choice.tools,
    tool_choice: choice.tool_choice,
    sampling: parseChatSampling(body),
    stream: body.stream ?? false,
    ...tokenLogprobs(body),
    native: { ...rest(body, mapped), ...reasoningField(messages, body.messages) },
    ...omitted({ tools: hosted, fields: leftOut(body) }),
  };
}

function leftOut(body: z.output<typeof Body>): string[] {
  return [
    ...unknownFields(body, known),
    ...unknownFields(body.reasoning, knownReasoning, "reasoning"),
    ...unknownFields(body.thinking, knownThinking, "thinking"),
    ...(body.messages.some((message) => isObject(message) && message.role === "assistant" && message.name) ? ["messages[].name"] : []),
  ];
}

/** What would change the meaning of the answer, with what is understood. */
function refuseUnsupported(body: Record<string, unknown>): void {
  if (typeof body.best_of === "number" && body.best_of !== 1) throw invalid("best_of", "only 1 is supported");
  for (const field of ["use_beam_search", "continue_final_message", "echo"])
    if (body[field] === true) throw invalid(field, "is not supported; leave it out");
  if (body.add_generation_prompt === false) throw invalid("add_generation_prompt", "must be true");
  if (Array.isArray(body.modalities) && body.modalities.some((modality) => modality !== "text"))
    throw invalid("modalities", 'only ["text"] is supported');
  refuseFunctions(body);
}

/** An answer in this old shape holds one call. Clients that use it would lose all others. */
function refuseFunctions(body: Record<string, unknown>): void {
  const sent = (value: unknown): boolean => value != null && !(Array.isArray(value) && value.length === 0);
  const field = ["functions", "function_call"].find((name) => sent(body[name]));
  if (field !== undefined) throw invalid(field, "is not supported; send `tools` and `tool_choice` instead");
}

function parseChatSampling(body: z.output<typeof Body>): Sampling {
  return {
    ...parseSampling(body),
    ...present({
      max_tokens: body.max_completion_tokens ?? body.max_tokens,
      parallel_tool_calls: body.parallel_tool_calls,
      reasoning_effort: body.reasoning_effort ?? effortOf(body),
    }),
  };
}

function tokenLogprobs({ logprobs, top_logprobs: top }: z.output<typeof Body>): Pick<NeutralRequest, "token_logprobs"> {
  if (logprobs) return { token_logprobs: { top: top ?? 0 } };
  if (top) throw invalid("top_logprobs", "is sent without `logprobs: true`; send both");
  return {};
}

/** Two more spellings in use: `reasoning: {effort}`, and `thinking: {type: "disabled"}` for none. */
function effortOf(body: Record<string, unknown>): string | undefined {
  if (isObject(body.reasoning) && typeof body.reasoning.effort === "string") return body.reasoning.effort;
  return isObject(body.thinking) && body.thinking.type === "disabled" ? "none" : undefined;
}

/**
 * Reasoning has no field in OpenAI's own API. Harnesses send back the name that they were given, so one that says
 * `reasoning` in its history goes on getting that.
 */
function reasoningField(messages: Message[], raw: unknown[]): Record<string, string> {
  if (!messages.some((message) => message.parts.some((part) => part.type === "reasoning"))) return {};
  const plain = raw.some(
    (message) => isObject(message) && typeof message.reasoning === "string" && message.reasoning_content === undefined,
  );
  return plain ? { reasoning_field: "reasoning" } : {};
}
