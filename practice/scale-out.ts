/**
 * vLLM's routes for disaggregated serving, as 0.33 has them: `/v1/chat/completions/render` says what chat would sample on, and
 * `/inference/v1/generate` samples on ids, with pictures beside them as `content_parts`. With `output_mode: "derender"` it
 * answers with the message that chat would have read out of the sample, where `parse_context` of `render` comes along.
 */
import { z } from "zod";
import { TurnReader, toMessage } from "./chat-completions.ts";
import type { PracticeExchange } from "./exchange.ts";
import { score } from "./generation.ts";
import { askedForm } from "./grammar/asked-form.ts";
import type { PracticeModel } from "./model/practice-model.ts";
import { expandPictures, picturesOf } from "./pictures.ts";
import { ChatRequest, knownId, LogprobCount, parseBody, room, samplingFields, TokenId, toSampling } from "./requests.ts";
import { ChatTool, renderChat } from "./template.ts";
import { toPromptLogprobs } from "./text-completions.ts";
import { encode } from "./tokenizer/vocabulary.ts";
import { type Counted, readTurn, type TokenPiece, toLogprob, toUsage } from "./turn.ts";
import type { TurnDelta } from "./turn-parser.ts";
import { WireError } from "./wire-error.ts";

const RenderRequest = ChatRequest.extend({
  add_generation_prompt: z.boolean().nullish(),
  mm_payload: z.enum(["tensors", "none"]).nullish(),
});

/** What render tells of sampling goes into `sampling_params` under these names. */
const passedOn = [
  ...["temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"],
  ...["logit_bias", "seed", "stop", "stop_token_ids", "structured_outputs", "response_format"],
] as const;

export function render(model: PracticeModel, exchange: PracticeExchange): void {
  const request = parseBody(RenderRequest, exchange.body);
  model.check(request.model);
  if (request.mm_payload !== "none" && picturesOf(request.messages).length > 0)
    throw new WireError(400, "There are no tensors here: ask with mm_payload none.", "mm_payload");
  const text = renderChat(request.messages, request.tools ?? [], request.add_generation_prompt ?? true);
  const { ids, placeholders, hashes } = expandPictures(encode(text), picturesOf(request.messages));
  const given = Object.entries(request).filter(
    ([name, value]) => (passedOn as readonly string[]).includes(name) && value !== undefined && value !== null,
  );
  const logprobs = request.logprobs ? { logprobs: request.top_logprobs ?? 0 } : {};
  exchange.json(200, {
    request_id: `chatcmpl-${exchange.requestId}`,
    token_ids: ids,
    token_offsets: null,
    features:
      hashes.length === 0
        ? null
        : { mm_hashes: { image: hashes }, mm_placeholders: { image: placeholders }, kwargs_data: null, mm_metadata: null },
    content_parts: null,
    sampling_params: {
      ...Object.fromEntries(given),
      ...logprobs,
      max_tokens: room(ids.length, model.maxModelLen, request.max_completion_tokens ?? request.max_tokens),
    },
    model: model.name,
    reasoning_ended: null,
    reasoning_parser_kwargs: null,
    return_token_ids: request.return_token_ids ?? null,
    output_mode: "tokens",
    parse_context: {
      tools: request.tools ?? null,
      tool_choice: request.tool_choice ?? (request.tools?.length ? "auto" : "none"),
      parallel_tool_calls: true,
      include_reasoning: true,
      chat_template_kwargs: {},
      history_tool_call_cnt: request.messages.reduce((sum, { tool_calls }) => sum + (tool_calls?.length ?? 0), 0),
    },
    stream: request.stream ?? false,
    cache_salt: request.cache_salt ?? null,
    priority: 0,
  });
}

const {
  model: _model,
  stream: _stream,
  n: _n,
  return_token_ids: _ids,
  return_tokens_as_token_ids: _names,
  stream_options: _options,
  ...paramFields
} = samplingFields;

const GenerateRequest = z.looseObject({
  token_ids: z.array(TokenId).min(1),
  model: z.string().nullish(),
  content_parts: z.array(z.looseObject({ type: z.literal("image_url"), url: z.string() })).nullish(),
  // With null tensors vLLM takes them from its cache: a request that says so is a mistake of ours.
  features: z.null({ error: "not taken here: send content_parts" }).optional(),
  sampling_params: z.looseObject({ ...paramFields, logprobs: LogprobCount }),
  output_mode: z.enum(["tokens", "derender"]).default("tokens"),
  parse_context: z
    .strictObject({
      tools: z.array(ChatTool).nullish(),
      tool_choice: ChatRequest.shape.tool_choice,
      parallel_tool_calls: z.boolean().nullish(),
      include_reasoning: z.boolean().nullish(),
      chat_template_kwargs: z.looseObject({}).nullish(),
      history_tool_call_cnt: z.number().int().nullish(),
    })
    .nullish(),
  return_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
});

export async function generate(model: PracticeModel, exchange: PracticeExchange): Promise<void> {
  const request = parseBody(GenerateRequest, exchange.body);
  const { sampling_params: params, parse_context: context, output_mode: mode } = request;
  model.check(request.model);
  model.checkListed({ "sampling_params.logprobs": params.logprobs, "sampling_params.prompt_logprobs": params.prompt_logprobs });
  if (request.stream) throw new WireError(400, `output_mode='${mode}' does not support stream=true.`, "stream");
  if (mode === "derender" && !context)
    throw new WireError(400, "output_mode='derender' requires parse_context on a server with a tool or reasoning parser.");
  const prompt = expandPictures(
    request.token_ids.map(knownId),
    (request.content_parts ?? []).map(({ url }) => url),
  );
  const usage: Counted = { prompt_tokens: prompt.ids.length, completion_tokens: 0, cached_tokens: 0 };
  const generation = {
    promptIds: prompt.modelIds,
    sampling: toSampling(params, params.logprobs ?? 0),
    maxTokens: room(prompt.ids.length, model.maxModelLen, params.max_tokens),
    seed: params.seed ?? model.nextSeed(),
    stops: params.stop,
    stopTokenIds: params.stop_token_ids ?? [],
    choices: params.structured_outputs?.choice ?? null,
    form: askedForm({ ...params, tools: context?.tools, tool_choice: context?.tool_choice }),
    signal: exchange.signal,
  };
  const { policy } = model;
  // Taken before the first token: a later name may belong to other weights.
  const { version } = policy;
  const reader = new TurnReader((context?.tools?.length ?? 0) > 0 && context?.tool_choice !== "none");
  const pieces: TokenPiece[] = [];
  const deltas: TurnDelta[] = [];
  for await (const piece of readTurn(policy, generation, usage)) {
    pieces.push(piece);
    deltas.push(...reader.read(piece));
  }
  const scored =
    typeof params.prompt_logprobs === "number" ? await score(policy, prompt.modelIds, params.prompt_logprobs, exchange.signal) : null;
  const read = mode === "derender";
  exchange.json(200, {
    request_id: `generate-tokens-${exchange.requestId}`,
    model: model.name,
    created: Math.floor(Date.now() / 1000),
    usage: toUsage(usage),
    // By the ids of the prompt, whatever the model reads in their place.
    prompt_logprobs: scored && toPromptLogprobs(scored.map((one, at) => one && { ...one, id: prompt.ids[at] as number })),
    prompt_token_id_logprobs: null,
    prompt_token_ids: request.return_token_ids ? prompt.ids : null,
    mm_placeholders: request.return_token_ids && prompt.placeholders.length > 0 ? { image: prompt.placeholders } : null,
    metrics: null,
    kv_transfer_params: null,
    ec_transfer_params: null,
    output_mode: mode,
    choices: [
      {
        index: 0,
        ...(read && { message: toMessage(deltas) }),
        finish_reason: read ? reader.finishReason : (pieces.at(-1)?.finish?.reason ?? null),
        stop_reason: pieces.at(-1)?.finish?.stop ?? null,
        token_ids: pieces.map(({ token }) => token.id),
        routed_experts: null,
        sampling_mask: null,
        weight_versions: [{ version, start: 0, end: pieces.length }],
        logprobs: typeof params.logprobs === "number" ? { content: pieces.map(({ token }) => toEntry(token, read)) } : null,
      },
    ],
  });
}

function toEntry(token: TokenPiece["token"], read: boolean): Record<string, unknown> {
  if (read) return { ...toLogprob(token), top_logprobs: token.top.map(toLogprob) };
  return {
    token_id: token.id,
    logprob: token.logprob,
    rank: null,
    top_logprobs: token.top.map(({ id, logprob }) => ({ token_id: id, logprob })),
  };
}
