/**
 * vLLM's OpenAI-compatible server. Chat completions are streamed with `return_token_ids`: prompt ids in the first
 * chunk, sampled ids and their logprobs in every other one, so that a stream that breaks still tells what was sampled.
 * Wire facts: vLLM 0.32 (run on a CPU), see ARCHITECTURE.md, "What an engine must give".
 */
import { Agent, type Dispatcher, request as httpRequest } from "undici";
import { z } from "zod";
import { AlidadeError, messageOf } from "../errors.ts";
import type { FinishReason, Sampling, Usage } from "../schema/message.ts";
import { decodeSse } from "../wire/sse.ts";
import type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";
import { toChatMessages, toChatTools } from "./vllm-messages.ts";

/** uvicorn closes an idle connection after 5 s; leaving it at 4 s means that we never send into a closed one. */
const idleSocketMs = 4_000;
/** Where vLLM writes -9999 it means NaN or minus infinity: nobody measured a logprob there. */
const noLogprobBelow = -9_000;
/** What an error body may tell us; the rest is not read. */
const maxErrorBytes = 64 * 1024;

export const vllm: EngineKind = {
  name: "vllm",
  title: "vLLM's OpenAI-compatible server (and what speaks its wire, such as the practice engine)",
  create: (options) => new VllmEngine(options),
};

const Logprob = z.looseObject({ logprob: z.number().nullable().optional() });
const Choice = z.looseObject({
  delta: z
    .looseObject({
      content: z.string().nullish(),
      reasoning: z.string().nullish(),
      reasoning_content: z.string().nullish(),
      tool_calls: z
        .array(
          z.looseObject({
            index: z.number().int().nonnegative(),
            id: z.string().nullish(),
            function: z.looseObject({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
  logprobs: z.looseObject({ content: z.array(Logprob).nullish() }).nullish(),
  token_ids: z.array(z.number().int()).nullish(),
  finish_reason: z.string().nullish(),
  stop_reason: z.union([z.string(), z.number()]).nullish(),
});
const WireUsage = z.looseObject({
  prompt_tokens: z.number().int().nullish(),
  completion_tokens: z.number().int().nullish(),
  prompt_tokens_details: z.looseObject({ cached_tokens: z.number().int().nullish() }).nullish(),
  completion_tokens_details: z.looseObject({ reasoning_tokens: z.number().int().nullish() }).nullish(),
});
const Chunk = z.looseObject({
  model: z.string().nullish(),
  prompt_token_ids: z.array(z.number().int()).nullish(),
  choices: z.array(Choice).default([]),
  usage: WireUsage.nullish(),
  error: z.unknown().optional(),
});
type Chunk = z.infer<typeof Chunk>;

class VllmEngine implements Engine {
  readonly name = "vllm";
  readonly baseUrl: string;
  readonly #apiKey: string | null;
  readonly #agent = new Agent({
    keepAliveTimeout: idleSocketMs,
    keepAliveMaxTimeout: idleSocketMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: null,
  });
  /** Connections made so far: a request that failed without a new one was sent on a reused socket. */
  #connects = 0;
  /** Found by the probe: a server that refuses our extra fields is still a text-only engine. */
  #extras = true;

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
    this.#apiKey = options.apiKey;
    this.#agent.on("connect", () => this.#connects++);
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    const models = ModelList.parse(await this.#json("GET", "/v1/models", undefined, signal)).data;
    const model = models[0];
    const facts: EngineFacts = {
      engine: this.name,
      base_url: this.baseUrl,
      version: await this.#json("GET", "/version", undefined, signal).then(
        (body) => Version.parse(body).version ?? null,
        () => null,
      ),
      models: models.map((one) => one.id),
      max_model_len: model?.max_model_len ?? null,
      token_ids: false,
      logprobs: false,
      logprob_semantics: null,
      token_in: false,
      missing: null,
    };
    if (!model) return { ...facts, missing: `the engine at ${this.baseUrl} serves no model: GET /v1/models answered an empty list` };
    const cold = await this.#probeOnce(model.id, 1, signal);
    this.#extras = cold.accepted;
    facts.token_ids = cold.token_ids;
    facts.logprobs = cold.logprob !== null;
    if (facts.logprobs) {
      const warm = await this.#probeOnce(model.id, 2, signal);
      // Raw logprobs ignore the temperature; after it the best token of a two times hotter distribution is less likely.
      facts.logprob_semantics = warm.logprob !== null && Math.abs(warm.logprob - (cold.logprob ?? 0)) < 1e-3 ? "raw" : "processed";
    }
    if (!facts.token_ids)
      facts.missing = `the engine at ${this.baseUrl} returned no token ids for a request with "return_token_ids": true. Serve the model with a vLLM that knows this field (tested with 0.32; it needs no server flag); where it does, a router in between strips "token_ids": point --engine at the server itself`;
    else if (!facts.logprobs)
      facts.missing = `the engine at ${this.baseUrl} returned token ids but no logprobs: start vLLM with --max-logprobs 1 or more`;
    return facts;
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    const response = await this.#send("POST", "/v1/chat/completions", this.#chatBody(request), signal, request.call_id);
    if (response.statusCode !== 200) throw await this.#refusal(response);
    yield { type: "accepted", status: response.statusCode };
    const stream = new ChunkReader();
    try {
      for await (const frame of decodeSse(response.body)) {
        if (frame.data === "[DONE]") break;
        yield* stream.read(toChunk(frame.data, this.baseUrl));
      }
    } catch (error) {
      if (signal.aborted || error instanceof AlidadeError) throw error;
      throw new AlidadeError("engine_error", `the engine at ${this.baseUrl} broke off in the middle of an answer: ${messageOf(error)}`, {
        cause: error,
      });
    } finally {
      response.body.destroy();
    }
    yield* stream.end(this.baseUrl);
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number> {
    const body = {
      model: request.model,
      messages: toChatMessages(request.messages),
      tools: toChatTools(request.tools),
      add_generation_prompt: true,
    };
    return TokenCount.parse(await this.#json("POST", "/tokenize", body, signal)).count;
  }

  async detokenize(model: string, tokenIds: number[], signal: AbortSignal): Promise<string> {
    return Detokenized.parse(await this.#json("POST", "/detokenize", { model, tokens: tokenIds }, signal)).prompt;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #chatBody(request: SampleRequest): Record<string, unknown> {
    const { reasoning_effort, parallel_tool_calls, ...sampling } = request.sampling;
    const hasTools = request.tools.length > 0;
    return {
      model: request.model,
      messages: toChatMessages(request.messages),
      ...(hasTools ? { tools: toChatTools(request.tools), tool_choice: toolChoice(request) } : {}),
      ...(hasTools && parallel_tool_calls !== undefined ? { parallel_tool_calls } : {}),
      ...(reasoning_effort === undefined ? {} : { reasoning_effort }),
      ...withoutUndefined(sampling),
      stream: true,
      stream_options: { include_usage: true },
      // top_logprobs 0 is sent explicitly: releases around 0.20 returned null without it.
      ...(this.#extras ? { return_token_ids: true, logprobs: true, top_logprobs: 0 } : {}),
    };
  }

  async #probeOnce(
    model: string,
    temperature: number,
    signal: AbortSignal,
  ): Promise<{ accepted: boolean; token_ids: boolean; logprob: number | null }> {
    const body = {
      model,
      messages: [{ role: "user", content: "ping" }],
      max_tokens: 1,
      temperature,
      logprobs: true,
      // The list begins with the sampled token, then the best ones: of two entries one is the best token's.
      top_logprobs: 2,
      return_token_ids: true,
    };
    const response = await this.#send("POST", "/v1/chat/completions", body, signal, "probe");
    if (response.statusCode === 400 || response.statusCode === 422) {
      await response.body.dump();
      return { accepted: false, token_ids: false, logprob: null };
    }
    if (response.statusCode !== 200) throw await this.#refusal(response);
    const answer = ProbeAnswer.safeParse(await response.body.json());
    const choice = answer.data?.choices[0];
    return {
      accepted: true,
      token_ids: Boolean(answer.data?.prompt_token_ids?.length) && Boolean(choice?.token_ids?.length),
      logprob: bestLogprob(choice?.logprobs?.content?.[0]?.top_logprobs ?? []),
    };
  }

  async #json(method: "GET" | "POST", path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const response = await this.#send(method, path, body, signal, null);
    if (response.statusCode !== 200) throw await this.#refusal(response);
    return response.body.json();
  }

  async #send(
    method: "GET" | "POST",
    path: string,
    body: unknown,
    signal: AbortSignal,
    requestId: string | null,
  ): Promise<Dispatcher.ResponseData> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    if (requestId) headers["x-request-id"] = requestId;
    if (this.#apiKey) headers.authorization = `Bearer ${this.#apiKey}`;
    const connects = this.#connects;
    try {
      return await httpRequest(this.baseUrl + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal,
        dispatcher: this.#agent,
      });
    } catch (error) {
      if (signal.aborted) throw error;
      throw this.#noAnswer(path, error, this.#connects === connects);
    }
  }

  /**
   * Never connected, or sent on a kept socket that the server had closed meanwhile: it has not seen the request. On a
   * fresh connection it has, and what it did with it nobody knows.
   */
  #noAnswer(path: string, error: unknown, notSeen: boolean): AlidadeError {
    if (notSeen)
      return new AlidadeError(
        "engine_unreachable",
        `cannot reach the engine at ${this.baseUrl}${path}: ${messageOf(error)}. Is it running, and is --engine its URL?`,
        { cause: error },
      );
    return new AlidadeError(
      "engine_error",
      `the engine at ${this.baseUrl}${path} closed the connection without an answer: ${messageOf(error)}`,
      { cause: error },
    );
  }

  /** The engine's own refusal, typed: a full context is the policy's, a bad request the user's, the rest the engine's. */
  async #refusal(response: Dispatcher.ResponseData): Promise<AlidadeError> {
    const text = await response.body.text().then((body) => body.slice(0, maxErrorBytes), messageOf);
    const said = EngineErrorBody.safeParse(tryJson(text)).data?.error?.message ?? text.slice(0, 500);
    const status = response.statusCode;
    if (status === 400 && /maximum context length|context window|exceed_context_size|max_model_len/i.test(said))
      return new AlidadeError("context_length_exceeded", said, { status: 400 });
    const message = `the engine at ${this.baseUrl} answered ${status}: ${said}`;
    if (status === 404 && /model/i.test(said)) return new AlidadeError("model_unknown", message);
    if (status === 400 || status === 422) return new AlidadeError("request_invalid", message, { status: 400 });
    return new AlidadeError("engine_error", message, { status: status === 429 || status === 503 ? status : 502 });
  }
}

function bestLogprob(entries: { logprob?: number | null | undefined }[]): number | null {
  const known = entries.flatMap(({ logprob }) => (typeof logprob === "number" ? [logprob] : []));
  return known.length === 0 ? null : Math.max(...known);
}

const ModelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), max_model_len: z.number().int().nullish() })) });
const Version = z.looseObject({ version: z.string().nullish() });
const TokenCount = z.looseObject({ count: z.number().int() });
const Detokenized = z.looseObject({ prompt: z.string() });
const EngineErrorBody = z.looseObject({ error: z.looseObject({ message: z.string() }).optional() });
const ProbeAnswer = z.looseObject({
  prompt_token_ids: z.array(z.number()).nullish(),
  choices: z.array(
    z.looseObject({
      token_ids: z.array(z.number()).nullish(),
      logprobs: z.looseObject({ content: z.array(z.looseObject({ top_logprobs: z.array(Logprob).nullish() })).nullish() }).nullish(),
    }),
  ),
});

/** Chunks in, events out: tool-call fragments are joined, and a call leaves when the next one or the end begins. */
class ChunkReader {
  #pending: { index: number; id: string; name: string; arguments: string } | null = null;
  #finish: FinishReason | null = null;
  #stop: string | number | null = null;
  #usage: Usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };
  #model: string | null = null;
  #sawPrompt = false;

  *read(chunk: Chunk): Generator<SampleEvent> {
    this.#model ??= chunk.model ?? null;
    if (chunk.prompt_token_ids?.length && !this.#sawPrompt) {
      this.#sawPrompt = true;
      yield { type: "prompt", token_ids: chunk.prompt_token_ids };
    }
    if (chunk.usage) this.#usage = toUsage(chunk.usage);
    const choice = chunk.choices[0];
    if (!choice) return;
    if (choice.token_ids?.length)
      yield { type: "tokens", token_ids: choice.token_ids, logprobs: toLogprobs(choice, choice.token_ids.length) };
    const reasoning = choice.delta?.reasoning ?? choice.delta?.reasoning_content;
    if (reasoning) yield { type: "reasoning-delta", text: reasoning };
    if (choice.delta?.content) {
      yield* this.#flush();
      yield { type: "text-delta", text: choice.delta.content };
    }
    for (const fragment of choice.delta?.tool_calls ?? []) {
      if (this.#pending?.index !== fragment.index) {
        yield* this.#flush();
        this.#pending = { index: fragment.index, id: "", name: "", arguments: "" };
      }
      this.#pending.id ||= fragment.id ?? "";
      this.#pending.name ||= fragment.function?.name ?? "";
      this.#pending.arguments += fragment.function?.arguments ?? "";
    }
    if (choice.finish_reason) {
      this.#finish = toFinishReason(choice.finish_reason);
      this.#stop = choice.stop_reason ?? null;
    }
  }

  *end(baseUrl: string): Generator<SampleEvent> {
    if (this.#finish === null) throw new AlidadeError("engine_error", `the engine at ${baseUrl} ended its answer without a finish reason`);
    yield* this.#flush();
    yield { type: "end", finish_reason: this.#finish, stop: this.#stop, usage: this.#usage, engine_model: this.#model };
  }

  *#flush(): Generator<SampleEvent> {
    if (this.#pending) yield { type: "tool-call", id: this.#pending.id, name: this.#pending.name, arguments: this.#pending.arguments };
    this.#pending = null;
  }
}

/** One logprob for each id of the chunk; all null where the engine gave another number of them. */
function toLogprobs(choice: z.infer<typeof Choice>, count: number): (number | null)[] {
  const content = choice.logprobs?.content;
  if (content?.length !== count) return new Array<null>(count).fill(null);
  return content.map(({ logprob }) =>
    typeof logprob === "number" && Number.isFinite(logprob) && logprob > noLogprobBelow ? logprob : null,
  );
}

function toUsage(usage: z.infer<typeof WireUsage>): Usage {
  return {
    prompt_tokens: usage.prompt_tokens ?? null,
    cached_tokens: usage.prompt_tokens_details?.cached_tokens ?? null,
    sampled_tokens: usage.completion_tokens ?? null,
    reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? null,
  };
}

const finishReasons: Record<string, FinishReason> = {
  stop: "stop",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  length: "length",
  abort: "abort",
  content_filter: "content_filter",
};

function toFinishReason(reason: string): FinishReason {
  return finishReasons[reason] ?? "error";
}

function toolChoice(request: SampleRequest): unknown {
  const choice = request.tool_choice ?? "auto";
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function toChunk(data: string, baseUrl: string): Chunk {
  const chunk = Chunk.safeParse(tryJson(data));
  if (!chunk.success)
    throw new AlidadeError("engine_error", `the engine at ${baseUrl} sent a chunk that is not of vLLM's shape: ${data.slice(0, 200)}`);
  if (chunk.data.error !== undefined && chunk.data.error !== null)
    throw new AlidadeError(
      "engine_error",
      `the engine at ${baseUrl} failed in the middle of an answer: ${JSON.stringify(chunk.data.error).slice(0, 500)}`,
    );
  return chunk.data;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function withoutUndefined(sampling: Sampling): Record<string, unknown> {
  return Object.fromEntries(Object.entries(sampling).filter(([, value]) => value !== undefined));
}
