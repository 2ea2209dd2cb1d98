/** A chat completions request as the neutral one. */
import { z } from "zod";
import type { Message, NeutralRequest, Sampling } from "../../schema/message.ts";
import { checked, invalid, isObject, present, rest } from "../edge.ts";
import { parseMessages } from "./messages.ts";
import { parseToolChoice, parseTools } from "./tools.ts";

const Body = z.looseObject({
  model: z.string(),
  messages: z.array(z.unknown()).min(1),
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().nullish(),
  min_p: z.number().nullish(),
  max_tokens: z.number().int().positive().nullish(),
  max_completion_tokens: z.number().int().positive().nullish(),
  seed: z.number().int().nullish(),
  presence_penalty: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  repetition_penalty: z.number().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning_effort: z.string().nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
});

const sampled = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "seed",
  "presence_penalty",
  "frequency_penalty",
  "repetition_penalty",
  "logit_bias",
  "parallel_tool_calls",
  "reasoning_effort",
] as const;

/** vLLM's own parameters that change what is sampled; they are passed on and recorded under their own names. */
const engineExtras = [
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "chat_template_kwargs",
  "min_tokens",
  "stop_token_ids",
  "ignore_eos",
  "bad_words",
  "allowed_token_ids",
  "thinking_token_budget",
] as const;

const mapped = [
  ...["model", "messages", "stream", "tools", "functions", "tool_choice", "function_call", "max_tokens", "max_completion_tokens"],
  ...["stop", "response_format"],
  ...sampled,
  ...engineExtras,
];

export function parseChat(value: unknown): NeutralRequest {
  const body = checked(Body, value);
  refuseUnsupported(body);
  const messages = parseMessages(body.messages);
  const { tools, native: toolNative } = parseTools(body.tools, body.functions, body.web_search_options);
  const choice = parseToolChoice(body.tool_choice, body.function_call, tools);
  return {
    model: body.model,
    messages,
    tools: choice.tools,
    tool_choice: choice.tool_choice,
    sampling: parseSampling(body),
    stream: body.stream ?? false,
    native: { ...rest(body, mapped), ...toolNative, ...reasoningField(messages, body.messages) },
  };
}

/** What would change the meaning of the answer, with what is understood. */
function refuseUnsupported(body: Record<string, unknown>): void {
  if (typeof body.n === "number" && body.n !== 1)
    throw invalid("n", `only 1 answer a request is supported, not ${body.n}; send the request ${body.n} times`);
  if (typeof body.best_of === "number" && body.best_of !== 1) throw invalid("best_of", "only 1 is supported");
  for (const field of ["use_beam_search", "continue_final_message", "echo"])
    if (body[field] === true) throw invalid(field, "is not supported; leave it out");
  if (body.add_generation_prompt === false) throw invalid("add_generation_prompt", "must be true");
  if (Array.isArray(body.modalities) && body.modalities.some((modality) => modality !== "text"))
    throw invalid("modalities", 'only ["text"] is supported');
}

function parseSampling(body: z.output<typeof Body>): Sampling {
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? undefined);
  const format = body.response_format;
  return {
    ...present(Object.fromEntries(sampled.map((key) => [key, body[key]]))),
    ...present(Object.fromEntries(engineExtras.map((key) => [key, body[key]]))),
    ...present({
      max_tokens: body.max_completion_tokens ?? body.max_tokens,
      stop: stop === undefined ? undefined : checked(z.array(z.string()), stop, "stop"),
      response_format: format?.type === "text" ? undefined : format,
      reasoning_effort: body.reasoning_effort ?? effortOf(body),
    }),
  };
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
