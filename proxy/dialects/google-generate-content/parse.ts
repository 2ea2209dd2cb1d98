/** A generateContent request as the neutral one. Model and stream come from the address. */
import { z } from "zod";
import type { Message, NeutralRequest, Sampling } from "../../../base/schema/message.ts";
import { maxAlternatives } from "../../../base/schema/sampled-token.ts";
import type { Route } from "../dialect.ts";
import { checked, invalid, isObject, present, rest } from "../edge.ts";
import { knownFields, omitted, unknownFields } from "../left-out/omitted.ts";
import { parseContents, parseSystem } from "./contents.ts";
import { toJsonSchema } from "./schema.ts";
import { parseToolChoice, parseTools } from "./tools.ts";
import { camelKeys } from "./wire.ts";

const Body = z.looseObject({
  model: z.string(),
  contents: z.array(z.unknown()).min(1),
  stream: z.boolean().nullish(),
  generationConfig: z.looseObject({}).nullish(),
});

const GenerationConfig = z.looseObject({
  temperature: z.number().nullish(),
  topP: z.number().nullish(),
  topK: z.number().nullish(),
  maxOutputTokens: z.number().int().positive().nullish(),
  stopSequences: z.array(z.string()).nullish(),
  seed: z.number().int().nullish(),
  presencePenalty: z.number().nullish(),
  frequencyPenalty: z.number().nullish(),
  responseMimeType: z.string().nullish(),
  responseModalities: z.array(z.string()).nullish(),
  thinkingConfig: z.looseObject({}).nullish(),
  responseLogprobs: z.boolean().nullish(),
  logprobs: z.number().int().min(0).max(maxAlternatives).nullish(),
});
type GenerationConfig = z.output<typeof GenerationConfig>;

const mapped = ["model", "stream", "contents", "systemInstruction", "tools", "toolConfig", "generateContentRequest"];

/** Read or refused below, and what is about an answer's way out alone. */
const known = knownFields([...mapped, "generationConfig", "cachedContent", "safetySettings", "labels", "serviceTier"]);
const knownConfig = new Set([...Object.keys(GenerationConfig.shape), "candidateCount", "responseSchema", "responseJsonSchema"]);
/** How much of its thoughts an answer shows is no matter of the model's. */
const knownThinking = new Set(["includeThoughts", "thinkingBudget", "thinkingLevel"]);
const knownToolConfig = new Set(["functionCallingConfig", "function_calling_config"]);

export function parseGenerateContent(value: unknown, kind?: Route["kind"]): NeutralRequest {
  const sent = checked(z.looseObject({}), value);
  const body = checked(Body, camelKeys(unwrapped(sent)));
  // What a cache holds is at Google: without it the prompt would be another one.
  if (body.cachedContent) throw invalid("cachedContent", "nothing is cached here; send the contents themselves");
  const config = checked(GenerationConfig, camelKeys(body.generationConfig ?? {}), "generationConfig");
  refuseUnsupported(config);
  const messages = parseContents(body.contents, "contents");
  if (kind !== "count_tokens") refusePrefill(messages);
  const tools = parseTools(body.tools, body.model);
  const choice = parseToolChoice(body.toolConfig, tools.tools);
  return {
    model: body.model,
    messages: [...parseSystem(body.systemInstruction, "systemInstruction"), ...messages],
    tools: choice.tools,
    tool_choice: choice.tool_choice,
    sampling: parseSampling(config),
    stream: body.stream ?? false,
    ...tokenLogprobs(config),
    native: rest(body, mapped),
    ...omitted({ tools: tools.hosted, fields: [...tools.fields, ...leftOut(body, config)] }),
  };
}

function leftOut(body: z.output<typeof Body>, config: GenerationConfig): string[] {
  const thinking = config.thinkingConfig ? camelKeys(config.thinkingConfig) : {};
  // 0 is no thinking, which engines know, and -1 is as much as the model likes.
  const hasBudget = typeof thinking.thinkingBudget === "number" && thinking.thinkingBudget > 0;
  return [
    ...unknownFields(body, known),
    ...unknownFields(config, knownConfig, "generationConfig"),
    ...unknownFields(thinking, knownThinking, "generationConfig.thinkingConfig"),
    ...(hasBudget ? ["generationConfig.thinkingConfig.thinkingBudget"] : []),
    ...unknownFields(body.toolConfig, knownToolConfig, "toolConfig"),
  ];
}

/** To go on with the model's own last words is another request than to answer: sampled as a new turn it would be wrong. */
function refusePrefill(messages: Message[]): void {
  if (messages.at(-1)?.role === "assistant")
    throw invalid("contents", "the last content is the model's, and continuing it (prefill) is not supported; end with the user");
}

/** Counting tokens may send the whole request one level deeper. */
function unwrapped(body: Record<string, unknown>): Record<string, unknown> {
  const inner = body.generateContentRequest ?? body.generate_content_request;
  return isObject(inner) ? { ...inner, model: body.model, stream: body.stream } : body;
}

/** What would change the meaning of the answer, with what is understood. */
function refuseUnsupported(config: GenerationConfig): void {
  if (config.responseModalities?.some((modality) => modality !== "TEXT"))
    throw invalid("generationConfig.responseModalities", 'only ["TEXT"] is supported');
  if (config.responseMimeType != null && !["text/plain", "application/json"].includes(config.responseMimeType))
    throw invalid(
      "generationConfig.responseMimeType",
      `only text/plain and application/json are supported, not ${config.responseMimeType}`,
    );
}

function tokenLogprobs({ responseLogprobs, logprobs: top }: GenerationConfig): Pick<NeutralRequest, "token_logprobs"> {
  if (responseLogprobs) return { token_logprobs: { top: top ?? 0 } };
  if (top) throw invalid("generationConfig.logprobs", "is sent without `responseLogprobs: true`; send both");
  return {};
}

function parseSampling(config: GenerationConfig): Sampling {
  return present({
    temperature: config.temperature,
    top_p: config.topP,
    // Google's JSON writes it as a float.
    top_k: config.topK == null ? undefined : Math.round(config.topK),
    max_tokens: config.maxOutputTokens,
    stop: config.stopSequences?.length ? config.stopSequences : undefined,
    seed: config.seed,
    presence_penalty: config.presencePenalty,
    frequency_penalty: config.frequencyPenalty,
    response_format: responseFormat(config),
    reasoning_effort: effortOf(config.thinkingConfig),
  });
}

/** In the shape that engines take, which wants a name. */
function responseFormat(config: GenerationConfig): unknown {
  const schema = config.responseJsonSchema ?? (isObject(config.responseSchema) ? toJsonSchema(config.responseSchema) : undefined);
  if (isObject(schema)) return { type: "json_schema", json_schema: { name: "output", schema } };
  return config.responseMimeType === "application/json" ? { type: "json_object" } : undefined;
}

/** Engines have no token budget for thinking; they only know thinking switched off. */
function effortOf(thinking: unknown): string | undefined {
  if (!isObject(thinking)) return undefined;
  const { thinkingBudget, thinkingLevel } = camelKeys(thinking);
  if (thinkingBudget === 0) return "none";
  return typeof thinkingLevel === "string" && thinkingLevel !== "THINKING_LEVEL_UNSPECIFIED" ? thinkingLevel.toLowerCase() : undefined;
}
