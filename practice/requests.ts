/**
 * What clients send, as far as it is understood. As in vLLM, unknown fields are ignored; a known one that would change
 * the answer and is not supported is refused, because ignoring it would be a wrong answer.
 */
import { z } from "zod";
import { readJson } from "../base/schema/read-json.ts";
import type { SamplingParameters } from "./model/sampler.ts";
import { ChatMessage, ChatTool } from "./template.ts";
import { inputIds } from "./tokenizer/vocabulary.ts";
import { WireError } from "./wire-error.ts";

/** A grammar is searched at every token: what is larger is no list of plays. */
const maxChoices = 1_000;
const maxChoiceLength = 100_000;

export const TokenId = z.number().int().nonnegative();
const Stop = z
  .union([z.string().min(1), z.array(z.string().min(1)).max(16)])
  .nullish()
  .transform((stop) => (typeof stop === "string" ? [stop] : (stop ?? [])));

/** How many tokens to list at each place. The server's --max-logprobs is the bound. */
export const LogprobCount = z.number().int().min(0).nullish();

export const samplingFields = {
  model: z.string().nullish(),
  temperature: z.number().nonnegative().nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  /** 0 and -1 are no limit. */
  top_k: z.number().int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  repetition_penalty: z.number().gt(0).nullish(),
  logit_bias: z.record(z.string().regex(/^\d+$/), z.number()).nullish(),
  seed: z.number().int().nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  stop: Stop,
  stop_token_ids: z.array(TokenId).max(64).nullish(),
  n: z.literal(1, { error: "only 1 is supported" }).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  return_token_ids: z.boolean().nullish(),
  /** Logprobs name their tokens by ids instead of texts. */
  return_tokens_as_token_ids: z.boolean().nullish(),
  prompt_logprobs: LogprobCount,
  structured_outputs: z
    .looseObject({
      choice: z.array(z.string().max(maxChoiceLength)).min(1).max(maxChoices).nullish(),
      json: z.looseObject({}).nullish(),
      regex: unsupported("only `choice` and `json` are supported"),
      grammar: unsupported("only `choice` and `json` are supported"),
      structural_tag: unsupported("only `choice` and `json` are supported"),
    })
    .nullish(),
  response_format: z
    .discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({ type: z.literal("json_object") }),
      z.looseObject({ type: z.literal("json_schema"), json_schema: z.looseObject({ schema: z.looseObject({}).nullish() }) }),
    ])
    .nullish(),
};

export const ChatRequest = z.looseObject({
  ...samplingFields,
  messages: z.array(ChatMessage).min(1),
  tools: z.array(ChatTool).nullish(),
  tool_choice: z
    .union([
      z.enum(["none", "auto", "required"]),
      z.looseObject({ type: z.literal("function"), function: z.looseObject({ name: z.string() }) }),
    ])
    .nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: LogprobCount,
  cache_salt: z.string().nullish(),
  /** vLLM's place for a prompt that is given as ids: it is sampled on as it stands, and no message is rendered. */
  kv_transfer_params: z.looseObject({ prompt_token_ids: z.array(TokenId).min(1).nullish() }).nullish(),
});
export type ChatRequest = z.infer<typeof ChatRequest>;

export const CompletionRequest = z.looseObject({
  ...samplingFields,
  prompt: z.union([z.string().min(1), z.array(TokenId).min(1)]),
  logprobs: LogprobCount,
  echo: z.literal(false, { error: "use prompt_logprobs" }).nullish(),
  suffix: unsupported("not supported"),
});
export type CompletionRequest = z.infer<typeof CompletionRequest>;

export const TokenizeRequest = z.looseObject({
  model: z.string().nullish(),
  prompt: z.string().nullish(),
  messages: z.array(ChatMessage).min(1).nullish(),
  tools: z.array(ChatTool).nullish(),
  add_generation_prompt: z.boolean().nullish(),
  return_token_strs: z.boolean().nullish(),
});

export const DetokenizeRequest = z.looseObject({ model: z.string().nullish(), tokens: z.array(TokenId) });

function unsupported(message: string) {
  return z.null({ error: message }).optional();
}

/** The body as its schema has it, or a refusal that names the field. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, text: string): z.infer<Schema> {
  let body: unknown;
  try {
    body = readJson(text);
  } catch (error) {
    throw new WireError(400, `The body is no valid JSON: ${error instanceof Error ? error.message : error}`, "body");
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join(".") || "body";
  throw new WireError(400, `Invalid ${field}: ${issue?.message ?? "not understood"}`, field);
}

type SampledRequest = Pick<CompletionRequest, (typeof ofSampling)[number]>;

const ofSampling = [
  ...(["temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias"] as const),
] as const;

/** vLLM's defaults: temperature 1 and no truncation. */
export function toSampling(request: SampledRequest, topLogprobs: number): SamplingParameters {
  return {
    temperature: request.temperature ?? 1,
    top_p: request.top_p ?? 1,
    top_k: Math.max(0, request.top_k ?? 0),
    min_p: request.min_p ?? 0,
    presence_penalty: request.presence_penalty ?? 0,
    frequency_penalty: request.frequency_penalty ?? 0,
    repetition_penalty: request.repetition_penalty ?? 1,
    logit_bias: new Map(Object.entries(request.logit_bias ?? {}).map(([id, bias]) => [knownId(Number(id)), bias])),
    top_logprobs: topLogprobs,
  };
}

/** The id, if the vocabulary has it. */
export function knownId(id: number): number {
  if (id >= inputIds) throw new WireError(400, `Token id ${id} is out of vocabulary`);
  return id;
}

/** Tokens that may be sampled: the requested number, limited by the room in the context. */
export function room(promptTokens: number, maxModelLen: number, requested: number | null | undefined): number {
  if (promptTokens >= maxModelLen)
    throw new WireError(
      400,
      `The maximum context length of this model is ${maxModelLen} tokens (max_model_len). The prompt has ${promptTokens} tokens, which leaves no room for an answer. Send a shorter prompt.`,
      "input_tokens",
    );
  return Math.min(requested ?? Number.POSITIVE_INFINITY, maxModelLen - promptTokens);
}
