/**
 * vLLM's OpenAI-compatible server. Chat completions are streamed with `return_token_ids`: prompt ids in the first
 * chunk, sampled ids and their logprobs in every other one, so that a stream that breaks still tells what was sampled.
 * Wire facts: vLLM 0.32 (run on a CPU), see ARCHITECTURE.md, "What an engine must give".
 */

import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import { imagesIn } from "../base/media/stored-picture.ts";
import type { Prompt, Sampling } from "../base/schema/message.ts";
import { IdText } from "../base/tokens/id-text.ts";
import { foldImages } from "../base/tokens/image-spans.ts";
import { SseDecoder, type TakeFrame } from "../base/wire/sse.ts";
import { cutOffArguments } from "./chat/cut-off-call.ts";
import { firstFacts } from "./chat/first-facts.ts";
import { logprobKind } from "./chat/logprob-kind.ts";
import { chatRequestJson, plainWording, toChatMessages, toChatToolChoice, toChatTools, verbatimWording } from "./chat/messages.ts";
import { promptComplaint } from "./chat/prompt-echo.ts";
import { servedModels } from "./chat/served-models.ts";
import { type SpelledToken, spelledPieces } from "./chat/spelled-pieces.ts";
import type {
  Engine,
  EngineFacts,
  EngineKind,
  PrefixReset,
  RankedToken,
  Rendered,
  RenderSource,
  SampleEvent,
  SampleRequest,
  ScoredImages,
  ServedModels,
  ServedPictures,
  TokenizeSource,
} from "./engine.ts";
import { EngineClient } from "./http/engine-client.ts";
import { gauge } from "./http/metrics.ts";
import { pulled } from "./http/pulled.ts";
import { ChunkReader } from "./vllm/chunks.ts";
import {
  findGrammarLogprobs,
  findMostListed,
  findTokenIn,
  probeCold,
  probeWarm,
  type TokenInField,
  whyNoTokenIn,
} from "./vllm/find-abilities.ts";
import { askedList, listFields } from "./vllm/listed-support.ts";
import { type ChatRender, probePictures, renderChat, samplePictured, scorePictured } from "./vllm/pictures.ts";
import { whyNotTrainable, withWeights } from "./vllm/probe.ts";
import { PromptLogprobs, toRankedTokens } from "./vllm/prompt-logprobs.ts";
import { readRouting } from "./vllm/routing.ts";
import { vllmSampledNothing, wholeSampledNothing } from "./vllm/sampled-nothing.ts";
import { wholeAnswer } from "./vllm/whole-answer.ts";

export const vllm: EngineKind = {
  name: "vllm",
  title: "vLLM's OpenAI-compatible server (and what speaks its wire, such as the practice engine)",
  create: (options) => new VllmEngine(options),
};

/**
 * Without a live reader, vLLM is asked for chunks of this many tokens. One token a chunk costs both sides more than the
 * rest of the call. When an answer breaks off, at most this many tokens are unknown. Older releases ignore the field. vLLM
 * sends the first and the last chunk at once in any case.
 */
const tokensAChunk = 64;

class VllmEngine implements Engine {
  readonly name = "vllm";
  readonly takesPrompts = true;
  readonly tellsTokens = true;
  readonly #client: EngineClient;
  /** How instructions are sent; the probe finds it. Many templates leave out a `developer` turn and do not say so. */
  #wording = plainWording;
  /** Found by the probe: a server that refuses our extra fields is still a text-only engine. */
  #extras = true;
  /** Found by the probe: how this server takes prompt ids; null: it was not seen to. */
  #tokenIn: TokenInField | null = null;
  #maxModelLen: number | null = null;
  /** Found by the probe: what the model makes of a picture; null: no route of this server tells. */
  #images: ServedPictures | null = null;
  /** Found by the probe: the server tells which experts the tokens took, but only in answers in one piece. */
  #tellsRouting = false;
  /** Found by the probe: how many tokens it lists after the sampling's cut; 0: it lists them before. */
  #mostListed = 0;
  /** Found by the probe: chat and completions tell which weights sampled which tokens. */
  #tellsWeights = false;

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.#client = new EngineClient({ ...options, sampledNothing: vllmSampledNothing });
  }

  get baseUrl(): string {
    return this.#client.baseUrl;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    const { facts, model } = await firstFacts(this, this.#client, signal);
    facts.version = await this.#client.json("GET", "/version", undefined, signal).then(
      (body) => Version.parse(body).version ?? null,
      () => null,
    );
    if (model === null) return facts;
    this.#wording = facts;
    facts.weight_version = await this.weightVersion(signal);
    const cold = await probeCold(this.#client, model, signal);
    this.#extras = cold.accepted;
    facts.token_ids = cold.prompt_ids && cold.token_ids;
    facts.logprobs = cold.logprob !== null;
    this.#tellsWeights = cold.weights;
    this.#tellsRouting = cold.routing && facts.token_ids;
    if (this.#tellsRouting) facts.routing = "not_live";
    if (facts.logprobs) {
      const warm = cold.best === null ? null : await probeWarm(this.#client, model, signal);
      facts.logprob_semantics = logprobKind(cold.best, warm?.best ?? null);
    }
    this.#mostListed = facts.logprob_semantics === "processed" && facts.token_ids ? await findMostListed(this.#client, model, signal) : 0;
    // One place of the list must show a token that was cut. So `top_k` may be at most one less.
    if (this.#mostListed > 0) facts.support = { most: this.#mostListed - 1, bounded: false };
    if (facts.logprobs) facts.grammar_logprobs = await findGrammarLogprobs(this.#client, model, signal);
    this.#maxModelLen = facts.max_model_len;
    this.#tokenIn = facts.token_ids ? await findTokenIn(this.#client, model, signal) : null;
    facts.token_in = this.#tokenIn !== null;
    if (!facts.token_in) facts.token_in_missing = whyNoTokenIn(this.baseUrl, facts);
    const { images, missing } = facts.token_ids ? await probePictures(this.#client, model, signal) : { images: null, missing: null };
    this.#images = images;
    if (images) facts.images = images;
    if (missing !== null) facts.images_missing = missing;
    facts.missing = whyNotTrainable(this.baseUrl, cold);
    return facts;
  }

  models(signal: AbortSignal): Promise<ServedModels> {
    return servedModels(this.#client, signal);
  }

  sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    return pulled((leave, take) => this.sampleInto(request, leave, take), signal);
  }

  async sampleInto(request: SampleRequest, signal: AbortSignal, take: (events: SampleEvent[]) => void): Promise<void> {
    const isPictured = imagesIn(request.messages).length > 0;
    if (isPictured && this.#images?.token_in && !request.live)
      return take(await samplePictured(this.#client, request, this.#chatFields(request, true), signal));
    // Chat tells its prompt and not where the pictures are: the same request is rendered beside it.
    const rendering = isPictured && this.#images ? this.#placesOf(request, signal) : null;
    const isWhole = this.#tellsRouting && !request.live && !request.prompt && !isPictured;
    const [path, body] = request.prompt
      ? (["/v1/completions", this.#promptBody(request, request.prompt)] as const)
      : (["/v1/chat/completions", this.#chatBody(request, isWhole)] as const);
    const response = await this.#client.open(path, body, signal, request.call_id, isWhole ? wholeSampledNothing : undefined);
    const listed = request.support && !request.prompt ? askedList(request, this.#mostListed) : null;
    // Where tokens are named by their ids, their texts are not told.
    const reader = new ChunkReader(this.baseUrl, request.token_logprobs, listed ? undefined : request.texts, isWhole, listed);
    const frames = new SseDecoder();
    const sampled: number[] = [];
    // Compared with the request as soon as it arrives: the echo is as long as the prompt, and is not kept.
    let complaint = request.prompt_ids ? promptComplaint(request.prompt_ids, null) : null;
    let echo: number[] | null = null;
    let isAccepted = false;
    let events: SampleEvent[] = [];
    const handOver = (): void => {
      // The first thing that a 200 says can be a refusal (see ChunkReader).
      if (reader.hasBegun && !isAccepted) events.unshift({ type: "accepted", status: 200 });
      isAccepted = reader.hasBegun;
      for (const event of events) {
        if (event.type === "tokens") for (const id of event.token_ids) sampled.push(id);
        else if (event.type === "prompt" && request.prompt_ids) complaint = promptComplaint(request.prompt_ids, event);
        else if (event.type === "prompt" && rendering) echo = [...event.token_ids];
      }
      const read = events;
      events = [];
      if (read.length > 0) take(read);
    };
    let routing: Extract<SampleEvent, { type: "routing" }> | null = null;
    const readWhole = async (): Promise<void> => {
      const { chunk, experts } = wholeAnswer(await response.text());
      if (experts !== null) routing = { type: "routing", routing: readRouting(experts, request.routing_start ?? 0) };
      try {
        reader.read(chunk, events);
        reader.finish();
      } finally {
        handOver();
      }
    };
    const readChunk: TakeFrame = (bytes, start, end) => {
      reader.read(bytes, events, start, end);
      // The text of a prompt is there only as long as the frame is.
      if (events.some(({ type }) => type === "prompt")) handOver();
    };
    try {
      if (isWhole) await readWhole();
      else
        await response.read((chunks) => {
          try {
            for (const chunk of chunks) frames.feed(chunk, readChunk);
          } finally {
            // Tokens before an invalid chunk were sampled all the same.
            handOver();
          }
          return reader.isDone;
        });
    } catch (error) {
      throw this.#client.brokenOff(error, signal);
    } finally {
      // Behind a stream that is done comes only the end of the body; read to there its connection can be used again.
      if (reader.isDone) response.skipRest();
      else response.abandon();
    }
    const last = reader.end();
    if (routing !== null) last.splice(-1, 0, routing);
    const places = await rendering;
    if (places && echo) {
      const differs = promptComplaint(IdText.of(places.token_ids), { token_ids: echo });
      if (differs === null) last.splice(-1, 0, { type: "images", spans: places.spans });
      else complaint = `another prompt than it rendered: ${differs}`;
    }
    const isCutOff = last.some((event) => event.type === "end" && event.finish_reason === "length");
    for (const [at, event] of last.entries()) {
      if (event.type === "end" && complaint) last[at] = { ...event, misaligned: `the engine sampled on ${complaint}` };
      else if (event.type === "tool-call" && isCutOff)
        event.arguments = await cutOffArguments(event, () => this.detokenize(request.model, sampled, signal));
    }
    take(last);
  }

  /** Where the pictures of a request stand in what chat samples on; null where the server does not say it. Never rejects. */
  async #placesOf(request: SampleRequest, signal: AbortSignal): Promise<ChatRender | null> {
    const chat = await renderChat(this.#client, this.#chatFields(request, true), signal).catch(() => null);
    return chat?.spans.length === imagesIn(request.messages).length ? chat : null;
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number> {
    return TokenCount.parse(await this.#client.json("POST", "/tokenize", this.#toTokenize(request.model, request), signal)).count;
  }

  async tokenize(model: string, source: TokenizeSource, signal: AbortSignal): Promise<number[]> {
    return Tokenized.parse(await this.#client.json("POST", "/tokenize", this.#toTokenize(model, source), signal)).tokens;
  }

  async spell(model: string, text: string, signal: AbortSignal): Promise<SpelledToken[]> {
    const body = { ...this.#toTokenize(model, { text }), return_token_strs: true };
    const { tokens, token_strs } = Spelled.parse(await this.#client.json("POST", "/tokenize", body, signal));
    return spelledPieces(text, tokens, token_strs ?? []);
  }

  async render(model: string, source: RenderSource, signal: AbortSignal): Promise<Rendered> {
    const body = { ...this.#toTokenize(model, source), ...templateSettings(source.sampling), add_generation_prompt: source.generation };
    if (imagesIn(source.messages).length > 0) {
      const chat = await renderChat(this.#client, { ...body, max_tokens: 1 }, signal);
      const folded = foldImages(chat.token_ids, chat.spans);
      return { token_ids: folded, text: source.ids_only ? "" : await this.detokenize(model, folded, signal) };
    }
    const token_ids = Tokenized.parse(await this.#client.json("POST", "/tokenize", body, signal)).tokens;
    return { token_ids, text: source.ids_only ? "" : await this.detokenize(model, token_ids, signal) };
  }

  /** Older servers have no such route. */
  async weightVersion(signal: AbortSignal): Promise<string | null> {
    const answer = await this.#client.json("GET", "/weight_info", undefined, signal).catch(() => null);
    return WeightInfo.safeParse(answer).data?.weight_version ?? null;
  }

  /**
   * `/reset_prefix_cache` exists under VLLM_SERVER_DEV_MODE=1. Older releases answer without a body, and do not say whether it worked.
   */
  async resetPrefixCache(signal: AbortSignal): Promise<PrefixReset> {
    const { status, text } = await this.#client.command("/reset_prefix_cache?reset_external=true", signal);
    if (status === 404 || status === 405) return "not_supported";
    return status === 200 && !/"success":\s*false/.test(text) ? "reset" : "failed";
  }

  async running(signal: AbortSignal): Promise<number | null> {
    return gauge(this.#client, "vllm:num_requests_running", signal);
  }

  async score(model: string, tokenIds: number[], signal: AbortSignal, images?: ScoredImages): Promise<(number | null)[]> {
    return (await this.scoreTop(model, tokenIds, 0, signal, images)).map(({ logprob }) => logprob);
  }

  async scoreTop(model: string, tokenIds: number[], top: number, signal: AbortSignal, images?: ScoredImages): Promise<RankedToken[]> {
    if (images && images.urls.length > 0) return scorePictured(this.#client, { model, tokenIds, top, ...images }, signal);
    // One token must be sampled; its logprob is of no interest.
    const body = { model, prompt: tokenIds, max_tokens: 1, temperature: 0, prompt_logprobs: top };
    const answer = Scored.parse(await this.#client.json("POST", "/v1/completions", body, signal));
    return toRankedTokens(tokenIds, answer.choices[0]?.prompt_logprobs, top);
  }

  async detokenize(model: string, tokenIds: number[], signal: AbortSignal): Promise<string> {
    return Detokenized.parse(await this.#client.json("POST", "/detokenize", { model, tokens: tokenIds }, signal)).prompt;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #toTokenize(model: string, source: TokenizeSource): Record<string, unknown> {
    if ("text" in source) return { model, prompt: source.text, add_special_tokens: false };
    const tools = source.tools.length > 0 ? { tools: toChatTools(source.tools) } : {};
    const messages = toChatMessages(source.messages, source.verbatim ? verbatimWording : this.#wording);
    return { model, messages, ...tools, add_generation_prompt: true };
  }

  /** `isWhole`: asks for the answer in one piece, with the experts that the tokens took. */
  #chatBody(request: SampleRequest, isWhole: boolean): Buffer {
    const more = request.prompt_ids ? this.#promptIds(request, request.prompt_ids) : [];
    const { stream, stream_options, stream_interval, ...fields } = this.#chatFields(request, false);
    const asked = isWhole
      ? { ...fields, ...(request.routing_start && { routed_experts_prompt_start: request.routing_start }) }
      : { ...fields, stream, stream_options, ...(stream_interval !== undefined && { stream_interval }) };
    return chatRequestJson(asked, { ...request, more }, this.#wording);
  }

  /** `whole`: with messages and tools, for the routes that answer in one piece. */
  #chatFields(request: SampleRequest, whole: boolean): Record<string, unknown> {
    const { reasoning_effort, parallel_tool_calls, ...sampling } = request.sampling;
    const hasTools = request.tools.length > 0;
    return {
      model: request.model,
      ...(hasTools ? { tool_choice: toChatToolChoice(request.tool_choice) } : {}),
      ...(hasTools && parallel_tool_calls !== undefined ? { parallel_tool_calls } : {}),
      ...(reasoning_effort === undefined ? {} : { reasoning_effort }),
      ...withoutUndefined(sampling),
      ...(whole ? {} : { stream: true, stream_options: { include_usage: true } }),
      ...(whole
        ? { messages: toChatMessages(request.messages, this.#wording), ...(hasTools && { tools: toChatTools(request.tools) }) }
        : {}),
      ...(this.#extras && request.cache_salt ? { cache_salt: request.cache_salt } : {}),
      // top_logprobs 0 is sent explicitly: releases around 0.20 returned null without it.
      ...(this.#extras
        ? { return_token_ids: true, logprobs: true, top_logprobs: request.token_logprobs?.top ?? 0, ...(whole ? {} : pace(request)) }
        : {}),
      ...(request.support && !whole ? listFields(askedList(request, this.#mostListed)) : {}),
      ...(this.#tellsWeights ? withWeights : {}),
    };
  }

  /** Throws where the server would do something else than sample on these ids, or less politely than on messages. */
  #promptIds(request: SampleRequest, ids: IdText): Buffer[] {
    if (!this.#tokenIn)
      throw new AlidadeError("request_invalid", `the server at ${this.baseUrl} was not seen to take prompt ids on its chat route`, {
        param: "prompt_ids",
      });
    if (imagesIn(request.messages).length > 0)
      throw new AlidadeError("request_invalid", "vllm renders messages with images itself: it ignores prompt ids beside them", {
        param: "prompt_ids",
      });
    // Rendered messages are measured by the server first; ids are, too late, by a check that means something else.
    if (this.#maxModelLen !== null && ids.length >= this.#maxModelLen)
      throw new AlidadeError(
        "context_length_exceeded",
        `The context length of this model is ${this.#maxModelLen} tokens; requested were ${ids.length + 1}: a prompt of ${ids.length} and at least one token of answer`,
      );
    // As they are in memory: as numbers they would be thirty thousand objects on their way to being this text.
    return [
      Buffer.from(`,${this.#tokenIn.map((key) => `${JSON.stringify(key)}:`).join("{")}[`),
      ...ids.pieces,
      Buffer.from(`]${"}".repeat(this.#tokenIn.length - 1)}`),
    ];
  }

  /** `logprobs: 0` is the sampled token's alone here. What is about tools and templates has no place without them. */
  #promptBody(request: SampleRequest, prompt: Prompt): Record<string, unknown> {
    const { reasoning_effort: _, parallel_tool_calls: __, ...sampling } = request.sampling;
    return {
      model: request.model,
      prompt: "text" in prompt ? prompt.text : prompt.token_ids,
      ...withoutUndefined(sampling),
      stream: true,
      stream_options: { include_usage: true },
      ...(this.#extras && request.cache_salt ? { cache_salt: request.cache_salt } : {}),
      ...(this.#extras ? { return_token_ids: true, logprobs: request.token_logprobs?.top ?? 0, ...pace(request) } : {}),
      ...(this.#tellsWeights ? withWeights : {}),
    };
  }
}

/** What the chat route hands to the template from a request's parameters, as its tokenizer route takes it. */
function templateSettings({ reasoning_effort, chat_template, chat_template_kwargs, documents }: Sampling = {}): Record<string, unknown> {
  const kwargs = {
    ...(reasoning_effort === undefined ? {} : { enable_thinking: reasoning_effort !== "none" }),
    ...z.record(z.string(), z.unknown()).safeParse(chat_template_kwargs).data,
    ...withoutUndefined({ documents, reasoning_effort }),
  };
  return withoutUndefined({ chat_template, chat_template_kwargs: Object.keys(kwargs).length > 0 ? kwargs : undefined });
}

function pace({ live }: SampleRequest): Record<string, unknown> {
  return live ? {} : { stream_interval: tokensAChunk };
}

const Version = z.looseObject({ version: z.string().nullish() });
const TokenCount = z.looseObject({ count: z.number().int() });
const Tokenized = z.looseObject({ tokens: z.array(z.number().int().nonnegative()) });
/** A special token that the tokenizer has no piece of is null. */
const Spelled = Tokenized.extend({
  token_strs: z
    .array(
      z
        .string()
        .nullable()
        .transform((piece) => piece ?? ""),
    )
    .nullish(),
});
const Detokenized = z.looseObject({ prompt: z.string() });
const Scored = z.looseObject({
  choices: z.array(z.looseObject({ prompt_logprobs: PromptLogprobs })),
});
const WeightInfo = z.looseObject({ weight_version: z.string().nullish() });

function withoutUndefined(sampling: Sampling): Record<string, unknown> {
  return Object.fromEntries(Object.entries(sampling).filter(([, value]) => value !== undefined));
}
