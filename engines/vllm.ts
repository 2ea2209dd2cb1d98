/**
 * vLLM's OpenAI-compatible server. Chat completions are streamed with `return_token_ids`: prompt ids in the first
 * chunk, sampled ids and their logprobs in every other one, so that a stream that breaks still tells what was sampled.
 * Wire facts: vLLM 0.32 (run on a CPU), see ARCHITECTURE.md, "What an engine must give".
 */
import { Agent, type Dispatcher, request as httpRequest } from "undici";
import { z } from "zod";
import { AlidadeError, messageOf } from "../errors.ts";
import type { Sampling } from "../schema/message.ts";
import { SseDecoder } from "../wire/sse.ts";
import type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";
import { StreamedResponse } from "./streamed-response.ts";
import { ChunkReader } from "./vllm-chunks.ts";
import { toChatMessages, toChatTools } from "./vllm-messages.ts";

/** uvicorn closes an idle connection after 5 s; leaving it at 4 s means that we never send into a closed one. */
const idleSocketMs = 4_000;
/** What an error body may tell us; the rest is not read. */
const maxErrorBytes = 64 * 1024;

export const vllm: EngineKind = {
  name: "vllm",
  title: "vLLM's OpenAI-compatible server (and what speaks its wire, such as the practice engine)",
  create: (options) => new VllmEngine(options),
};

const Logprob = z.looseObject({ logprob: z.number().nullable().optional() });

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
  /** Found by the probe: many templates skip a `developer` turn without a word, and with it the harness's instructions. */
  #roles: Record<string, string> = {};
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
      role_mapping: {},
      missing: null,
    };
    if (!model) return { ...facts, missing: `the engine at ${this.baseUrl} serves no model: GET /v1/models answered an empty list` };
    this.#roles = facts.role_mapping = await this.#probeRoles(model.id, signal);
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
    const connects = this.#connects;
    const response = this.#open("/v1/chat/completions", this.#chatBody(request), signal, request.call_id);
    const status = await response.status.catch((error: unknown) => {
      throw signal.aborted ? error : this.#noAnswer("/v1/chat/completions", error, this.#connects === connects);
    });
    if (status !== 200) throw this.#refusal(status, await response.text().catch(messageOf));
    yield { type: "accepted", status };
    const chunks = new ChunkReader(this.baseUrl);
    let isDone = false;
    try {
      const frames = new SseDecoder();
      for await (const bytes of response.reads()) {
        const events: SampleEvent[] = [];
        try {
          for (const frame of frames.feed(bytes)) {
            isDone = frame.data === "[DONE]";
            if (isDone) break;
            chunks.read(frame.data, events);
          }
        } finally {
          // What was sampled before a chunk that is wrong was sampled all the same.
          yield* events;
        }
        if (isDone) break;
      }
    } catch (error) {
      if (signal.aborted || error instanceof AlidadeError) throw error;
      throw new AlidadeError("engine_error", `the engine at ${this.baseUrl} broke off in the middle of an answer: ${messageOf(error)}`, {
        cause: error,
      });
    } finally {
      // Behind a stream that is done comes only the end of the body; read to there its connection can be used again.
      if (isDone) response.skipRest();
      else response.abandon();
    }
    yield* chunks.end();
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number> {
    const body = {
      model: request.model,
      messages: toChatMessages(request.messages, this.#roles),
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
      messages: toChatMessages(request.messages, this.#roles),
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

  /** Does the template print a developer turn? Counted by the server's own tokenizer; where it has no such route, nothing is mapped. */
  async #probeRoles(model: string, signal: AbortSignal): Promise<Record<string, string>> {
    const count = (role: string | null): Promise<number> => {
      const turn = role === null ? [] : [{ role, content: "Alidade asks whether a turn of this role is printed at all." }];
      return this.#json("POST", "/tokenize", { model, messages: [...turn, { role: "user", content: "ping" }] }, signal).then(
        (body) => TokenCount.parse(body).count,
      );
    };
    const user = await count(null).catch(() => null);
    const system = user === null ? null : await count("system").catch(() => null);
    if (user === null || system === null || system <= user) return {};
    const developer = await count("developer").catch(() => user);
    return developer - user < (system - user) / 2 ? { developer: "system" } : {};
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
    if (response.statusCode !== 200) throw this.#refusal(response.statusCode, await response.body.text().catch(messageOf));
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
    if (response.statusCode !== 200) throw this.#refusal(response.statusCode, await response.body.text().catch(messageOf));
    return response.body.json();
  }

  /** A request whose answer is read as it comes. */
  #open(path: string, body: unknown, signal: AbortSignal, requestId: string): StreamedResponse {
    const url = new URL(this.baseUrl + path);
    const response = new StreamedResponse(signal);
    const headers = this.#headers(true, requestId);
    this.#agent.dispatch(
      { origin: url.origin, path: url.pathname + url.search, method: "POST", headers, body: JSON.stringify(body) },
      response,
    );
    return response;
  }

  #headers(hasBody: boolean, requestId: string | null): Record<string, string> {
    return {
      ...(hasBody && { "content-type": "application/json" }),
      ...(requestId && { "x-request-id": requestId }),
      ...(this.#apiKey && { authorization: `Bearer ${this.#apiKey}` }),
    };
  }

  async #send(
    method: "GET" | "POST",
    path: string,
    body: unknown,
    signal: AbortSignal,
    requestId: string | null,
  ): Promise<Dispatcher.ResponseData> {
    const connects = this.#connects;
    try {
      return await httpRequest(this.baseUrl + path, {
        method,
        headers: this.#headers(body !== undefined, requestId),
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
  #refusal(status: number, body: string): AlidadeError {
    const text = body.slice(0, maxErrorBytes);
    const said = EngineErrorBody.safeParse(tryJson(text)).data?.error?.message ?? text.slice(0, 500);
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

function toolChoice(request: SampleRequest): unknown {
  const choice = request.tool_choice ?? "auto";
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
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
