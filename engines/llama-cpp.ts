/**
 * llama.cpp's llama-server. A turn comes in one piece: with tools it refuses logprobs while it streams, and a stream
 * leaves out the tokens inside characters of several bytes. The whole answer has all sampled ids (`__verbose.tokens`)
 * and fewer logprobs: what cannot be told is null, which leaves the call out of RL with its reason.
 * Prompt ids are those of the prompt text that the server says it used, by its own tokenizer, held against its count.
 * Wire facts: llama.cpp of 2026 (a server was run), see ARCHITECTURE.md, "What an engine must give".
 */
import { z } from "zod";
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { Sampling } from "../base/schema/message.ts";
import { readJson } from "../base/schema/read-json.ts";
import { alignById, isMeasured, placeById } from "./chat/alignment.ts";
import { chatFinish } from "./chat/finish.ts";
import { firstFacts } from "./chat/first-facts.ts";
import { choiceGbnf, readGrammar } from "./chat/grammar.ts";
import { logprobKind } from "./chat/logprob-kind.ts";
import { plainWording, toChatMessages, toChatToolChoice, toChatTools, verbatimWording } from "./chat/messages.ts";
import { messageEvents, ReplyMessage } from "./chat/reply.ts";
import { fromChatEntry, withOwnBytes } from "./chat/sampled-tokens.ts";
import { servedModels } from "./chat/served-models.ts";
import type { SpelledToken } from "./chat/spelled-pieces.ts";
import type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest, ServedModels, TokenizeSource } from "./engine.ts";
import { EngineClient } from "./http/engine-client.ts";

export const llamaCpp: EngineKind = {
  name: "llama-cpp",
  title: "llama.cpp's llama-server (start it with --jinja): turns come in one piece, some logprobs are missing",
  create: (options) => new LlamaCppEngine(options),
};

class LlamaCppEngine implements Engine {
  readonly name = "llama-cpp";
  readonly holdsToolsToGrammar = true;
  readonly tellsTokens = true;
  readonly #client: EngineClient;
  #wording = plainWording;

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.#client = new EngineClient(options);
  }

  get baseUrl(): string {
    return this.#client.baseUrl;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    const { facts, model } = await firstFacts(this, this.#client, signal);
    const props = Props.safeParse(await this.#client.json("GET", "/props", undefined, signal).catch(() => null)).data;
    facts.version = props?.build_info ?? null;
    facts.max_model_len = props?.default_generation_settings?.n_ctx ?? null;
    facts.token_in_missing = "llama-server takes ids on /completion only, where its parsers for tool calls and reasoning do not run";
    if (model === null) return facts;
    this.#wording = facts;
    const cold = await this.#probeOnce(model, 1, {}, signal);
    facts.token_ids = cold.tokens && cold.prompt;
    facts.logprobs = cold.sampled !== null || cold.best !== null;
    if (facts.logprobs) {
      const warm = await this.#probeOnce(model, 2, {}, signal);
      facts.logprob_semantics = logprobKind(cold.best, warm.best);
      const forced = await this.#probeOnce(model, 1, { grammar: choiceGbnf(["a"]) }, signal).catch(() => null);
      facts.grammar_logprobs = forced?.sampled == null ? null : forced.sampled === 0 ? "masked" : "unmasked";
    }
    facts.missing = this.#missing(cold);
    return facts;
  }

  models(signal: AbortSignal): Promise<ServedModels> {
    return servedModels(this.#client, signal);
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    const body = this.#chatBody(request);
    const response = await this.#client.open("/v1/chat/completions", body, signal, request.call_id);
    yield { type: "accepted", status: 200 };
    const text = await response.text().catch((error: unknown) => {
      throw this.#client.brokenOff(error, signal);
    });
    const reply = this.#parse(text);
    const prompt = await this.#promptIds(request, reply.__verbose?.prompt ?? null, signal);
    yield* this.#events(reply, prompt, request);
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number> {
    return (await this.tokenize(request.model, request, signal)).length;
  }

  async tokenize(model: string, source: TokenizeSource, signal: AbortSignal): Promise<number[]> {
    if ("text" in source) return this.#encode(source.text, false, signal);
    return this.#encode(await this.#render(model, source, signal), true, signal);
  }

  async spell(_model: string, text: string, signal: AbortSignal): Promise<SpelledToken[]> {
    const body = { content: text, add_special: false, parse_special: true, with_pieces: true };
    const { tokens } = Spelled.parse(await this.#client.json("POST", "/tokenize", body, signal));
    return tokens.map(({ id, piece }) => ({ id, bytes: Buffer.from(piece) }));
  }

  async detokenize(_model: string, tokenIds: number[], signal: AbortSignal): Promise<string> {
    return Detokenized.parse(await this.#client.json("POST", "/detokenize", { tokens: tokenIds }, signal)).content;
  }

  async running(signal: AbortSignal): Promise<number | null> {
    const slots = Slots.safeParse(await this.#client.json("GET", "/slots", undefined, signal).catch(() => null)).data;
    return slots ? slots.filter((slot) => slot.is_processing).length : null;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #chatBody(request: SampleRequest): Record<string, unknown> {
    if (request.prompt_ids)
      throw new AlidadeError("request_invalid", "llama-cpp takes no prompt ids on its chat route", { param: "prompt_ids" });
    const { parallel_tool_calls, ...sampling } = request.sampling;
    const hasTools = request.tools.length > 0;
    return {
      model: request.model,
      messages: toChatMessages(request.messages, this.#wording, "reasoning_content"),
      ...(hasTools ? { tools: toChatTools(request.tools), tool_choice: toChatToolChoice(request.tool_choice) } : {}),
      ...(hasTools && parallel_tool_calls !== undefined ? { parallel_tool_calls } : {}),
      ...toLlamaSampling(sampling),
      stream: false,
      ...idFields,
      ...(request.token_logprobs && { top_logprobs: Math.max(idFields.top_logprobs, request.token_logprobs.top) }),
    };
  }

  /** The prompt as the server says it was, else as its template renders it, in the server's own tokens. */
  async #promptIds(
    request: Pick<SampleRequest, "model" | "messages" | "tools">,
    prompt: string | null,
    signal: AbortSignal,
  ): Promise<number[] | null> {
    try {
      return await this.#encode(prompt ?? (await this.#render(request.model, request, signal)), true, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return null;
    }
  }

  async #render(model: string, source: Extract<TokenizeSource, { messages: unknown }>, signal: AbortSignal): Promise<string> {
    const body = {
      model,
      messages: toChatMessages(source.messages, source.verbatim ? verbatimWording : this.#wording, "reasoning_content"),
      ...(source.tools.length > 0 ? { tools: toChatTools(source.tools) } : {}),
    };
    return Rendered.parse(await this.#client.json("POST", "/apply-template", body, signal)).prompt;
  }

  async #encode(content: string, isPrompt: boolean, signal: AbortSignal): Promise<number[]> {
    const body = { content, add_special: isPrompt, parse_special: true };
    return Tokenized.parse(await this.#client.json("POST", "/tokenize", body, signal)).tokens;
  }

  #parse(text: string): LlamaCppReply {
    try {
      return LlamaCppReply.parse(readJson(text));
    } catch (error) {
      const why = error instanceof z.ZodError ? `${error.issues[0]?.path.join(".")}: ${error.issues[0]?.message}` : messageOf(error);
      throw new AlidadeError(
        "engine_error",
        `the engine at ${this.baseUrl} sent an answer that is not of llama-server's shape: ${why}: ${text.slice(0, 200)}`,
      );
    }
  }

  *#events(reply: LlamaCppReply, prompt: number[] | null, request: SampleRequest): Generator<SampleEvent> {
    const choice = reply.choices[0];
    if (!choice) throw new AlidadeError("engine_error", `the engine at ${this.baseUrl} answered without a choice`);
    const verbose = reply.__verbose ?? null;
    const counted = reply.usage?.prompt_tokens ?? null;
    if (prompt) yield { type: "prompt", token_ids: prompt };
    yield* messageEvents(choice.message, choice.message.reasoning_content);
    const ids = verbose?.tokens ?? [];
    const entries = choice.logprobs?.content ?? [];
    const aligned = alignById(ids, entries);
    const { token_logprobs: asked, texts } = request;
    const areNew = texts !== undefined && aligned !== null && ids.some((id) => texts.lacks(id));
    const placed = asked || areNew ? placeById(ids, entries) : null;
    const tokens = placed && withOwnBytes(placed.map((entry, at) => fromChatEntry(ids[at] ?? null, entry ?? {}, asked?.top ?? 0)));
    if (areNew && tokens) texts.keep(tokens);
    if (ids.length > 0)
      yield { type: "tokens", token_ids: ids, logprobs: aligned ?? ids.map(() => null), ...(asked && tokens && { tokens }) };
    const complaints = [
      aligned === null && "logprobs of other ids than it sampled",
      verbose?.truncated && "an answer to a prompt that it had truncated",
      prompt && counted !== null && prompt.length !== counted && `${counted} prompt tokens and a prompt of ${prompt.length} ids`,
    ].filter((one) => typeof one === "string");
    yield {
      type: "end",
      finish_reason: chatFinish(choice.finish_reason),
      stop: verbose?.stop_type === "word" ? verbose.stopping_word || null : null,
      usage: {
        prompt_tokens: counted,
        cached_tokens: reply.usage?.prompt_tokens_details?.cached_tokens ?? null,
        sampled_tokens: reply.usage?.completion_tokens ?? null,
        reasoning_tokens: null,
      },
      engine_model: reply.model ?? null,
      ...(complaints.length > 0 && { misaligned: `the engine gave ${complaints.join(", and ")}` }),
    };
  }

  async #probeOnce(model: string, temperature: number, extra: Record<string, unknown>, signal: AbortSignal): Promise<LlamaCppProbe> {
    const body = {
      model,
      messages: [{ role: "user", content: "ping" }],
      max_tokens: 1,
      temperature,
      // The server's defaults truncate the distribution; a token that is cut off has no logprob to compare.
      top_k: 0,
      top_p: 1,
      min_p: 0,
      stream: false,
      ...idFields,
      ...extra,
    };
    const reply = this.#parse(JSON.stringify(await this.#client.json("POST", "/v1/chat/completions", body, signal)));
    const entry = reply.choices[0]?.logprobs?.content?.[0];
    const known = (entry?.top_logprobs ?? []).flatMap(({ logprob }) => (isMeasured(logprob) ? [logprob] : []));
    const request = { model, messages: [{ role: "user" as const, parts: [{ type: "text" as const, text: "ping" }] }], tools: [] };
    const prompt = await this.#promptIds(request, reply.__verbose?.prompt ?? null, signal);
    return {
      tokens: Boolean(reply.__verbose?.tokens?.length),
      prompt: Boolean(prompt?.length),
      // One token can be half a character, and then this server gives no logprob for it, although it does otherwise.
      best: known.length > 0 ? Math.max(...known) : null,
      sampled: entry && isMeasured(entry.logprob) ? entry.logprob : null,
    };
  }

  #missing(probed: LlamaCppProbe): string | null {
    if (!probed.tokens || !probed.prompt)
      return `the engine at ${this.baseUrl} returned no ${probed.tokens ? "prompt" : "tokens"} under "__verbose" for a request with "verbose" and "return_tokens": serve the model with a llama-server of 2026; where it is one, a router in between strips the field: point --engine at the server itself`;
    if (probed.sampled === null && probed.best === null)
      return `the engine at ${this.baseUrl} returned token ids but no logprobs for "logprobs": true`;
    return null;
  }
}

type LlamaCppProbe = { tokens: boolean; prompt: boolean; best: number | null; sampled: number | null };

/** `top_logprobs` is what makes it count: without it the server takes 20 candidates for each token. */
const idFields = { logprobs: true, top_logprobs: 1, return_tokens: true, verbose: true };

function toLlamaSampling(sampling: Sampling): Record<string, unknown> {
  const { structured_outputs, top_k, repetition_penalty, ...rest } = sampling;
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)),
    // 0 is no top_k here.
    ...(top_k === undefined ? {} : { top_k: Math.max(0, top_k) }),
    ...(repetition_penalty === undefined ? {} : { repeat_penalty: repetition_penalty }),
    ...toGrammar(structured_outputs),
  };
}

function toGrammar(structured: unknown): Record<string, unknown> {
  const grammar = readGrammar(structured);
  switch (grammar?.kind) {
    case undefined:
      return {};
    case "choice":
      return { grammar: choiceGbnf(grammar.choice) };
    case "grammar":
      return { grammar: grammar.grammar };
    case "json":
      return { json_schema: grammar.json };
    case "regex":
      throw new AlidadeError("request_invalid", "llama-cpp knows no structured_outputs.regex: give choice, json or grammar (GBNF)", {
        param: "structured_outputs.regex",
      });
  }
}

const Id = z.number().int().nonnegative();
const Entry = z.looseObject({ id: Id, logprob: z.number() });
const LlamaCppReply = z.looseObject({
  model: z.string().nullish(),
  choices: z.array(
    z.looseObject({
      message: ReplyMessage,
      finish_reason: z.string().nullish(),
      logprobs: z.looseObject({ content: z.array(Entry.extend({ top_logprobs: z.array(Entry).nullish() })).nullish() }).nullish(),
    }),
  ),
  usage: z
    .looseObject({
      prompt_tokens: z.number().int().nullish(),
      completion_tokens: z.number().int().nullish(),
      prompt_tokens_details: z.looseObject({ cached_tokens: z.number().int().nullish() }).nullish(),
    })
    .nullish(),
  __verbose: z
    .looseObject({
      tokens: z.array(Id).nullish(),
      prompt: z.string().nullish(),
      truncated: z.boolean().nullish(),
      stop_type: z.string().nullish(),
      stopping_word: z.string().nullish(),
    })
    .nullish(),
});
type LlamaCppReply = z.infer<typeof LlamaCppReply>;
const Props = z.looseObject({
  build_info: z.string().nullish(),
  default_generation_settings: z.looseObject({ n_ctx: z.number().int().nullish() }).nullish(),
});
const Tokenized = z.looseObject({ tokens: z.array(Id) });
/** The bytes in the place of a text are a part of a character. */
const Spelled = z.looseObject({
  tokens: z.array(z.looseObject({ id: Id, piece: z.union([z.string(), z.array(z.number().int().min(0).max(255))]) })),
});
const Detokenized = z.looseObject({ content: z.string() });
const Rendered = z.looseObject({ prompt: z.string() });
const Slots = z.array(z.looseObject({ is_processing: z.boolean() }));
