/**
 * OpenAI's hosted API, and any other that speaks its Chat Completions, through OpenAI's own SDK. Text only: see hosted.ts.
 */
import type OpenAI from "openai";
import type { ChatCompletionChunk, ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import { AlidadeError } from "../base/errors.ts";
import { argumentsObject } from "../base/schema/arguments.ts";
import type { FinishReason, Usage } from "../base/schema/message.ts";
import { chatFinish } from "./chat/finish.ts";
import { plainWording, toChatMessages, toChatToolChoice, toChatTools } from "./chat/messages.ts";
import type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";
import { HostedConnections, hostedFacts, hostedFailure, noTimeoutMs, refusePromptIds, takeSampling } from "./hosted/hosted.ts";

export const openai: EngineKind = {
  name: "openai",
  title: "OpenAI's hosted API: text only, for distillation and evaluation",
  defaultUrl: "https://api.openai.com",
  create: (options) => new OpenAiEngine("openai", options),
};

export const openaiCompatible: EngineKind = {
  name: "openai-compatible",
  title: "any other server of OpenAI's Chat Completions: text only; unknown sampling parameters are passed on",
  create: (options) => new OpenAiEngine("openai-compatible", options),
};

/** What OpenAI's own API takes. `max_tokens` is refused there by models that reason. */
const ownNames = {
  temperature: "temperature",
  top_p: "top_p",
  stop: "stop",
  seed: "seed",
  max_tokens: "max_completion_tokens",
  presence_penalty: "presence_penalty",
  frequency_penalty: "frequency_penalty",
  logit_bias: "logit_bias",
  response_format: "response_format",
  reasoning_effort: "reasoning_effort",
};

class OpenAiEngine implements Engine {
  readonly name: "openai" | "openai-compatible";
  readonly baseUrl: string;
  readonly #apiKey: string | null;
  readonly #connections = new HostedConnections();
  #client: Promise<OpenAI> | null = null;

  constructor(name: "openai" | "openai-compatible", options: { baseUrl: string; apiKey: string | null }) {
    this.name = name;
    this.baseUrl = options.baseUrl.replace(/\/+$/, "");
    this.#apiKey = options.apiKey;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    try {
      const page = await (await this.#sdk()).models.list({ signal });
      return hostedFacts(
        this.name,
        this.baseUrl,
        page.data.map((model) => model.id),
        {},
      );
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal);
    }
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    refusePromptIds(this.name, request);
    const body = this.#body(request);
    let began = false;
    try {
      const stream = await (await this.#sdk()).chat.completions.create(body, { signal });
      yield { type: "accepted", status: 200 };
      began = true;
      const turn = new StreamedTurn();
      for await (const chunk of stream) yield* turn.read(chunk);
      // The SDK ends an aborted stream like a finished one.
      signal.throwIfAborted();
      yield* turn.end(this.baseUrl);
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal, began);
    }
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  #sdk(): Promise<OpenAI> {
    this.#client ??= openSdk(this.baseUrl, this.#apiKey, this.#connections);
    return this.#client;
  }

  #body(request: SampleRequest): ChatCompletionCreateParamsStreaming {
    const { parallel_tool_calls, ...sampling } = request.sampling;
    const hasTools = request.tools.length > 0;
    const body = {
      model: request.model,
      messages: toChatMessages(request.messages, plainWording, null),
      ...(hasTools ? { tools: toChatTools(request.tools), tool_choice: toChatToolChoice(request.tool_choice) } : {}),
      ...(hasTools && parallel_tool_calls !== undefined ? { parallel_tool_calls } : {}),
      ...(this.name === "openai" ? takeSampling(this.name, sampling, ownNames) : sampling),
      stream: true as const,
      stream_options: { include_usage: true },
    };
    // The neutral conversation is wider than the SDK's types; the API checks it.
    return body as unknown as ChatCompletionCreateParamsStreaming;
  }
}

/** Loaded on first use: an SDK costs a fifth of a second and 30 MB, and most proxies need none. */
async function openSdk(baseUrl: string, apiKey: string | null, { fetch }: HostedConnections): Promise<OpenAI> {
  const { OpenAI } = await import("openai");
  return new OpenAI({
    // Everything is said here, so that the SDK reads no variable of the operator's shell.
    apiKey: apiKey ?? "none",
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL: new URL(baseUrl).pathname === "/" ? `${baseUrl}/v1` : baseUrl,
    fetch,
    maxRetries: 0,
    timeout: noTimeoutMs,
    logLevel: "off",
  });
}

/** Chunks in, events out. Fragments of a tool call are joined, and text between them follows the call. */
class StreamedTurn {
  #pending: { index: number | undefined; id: string; name: string; arguments: string; behind: string } | null = null;
  #finish: FinishReason | null = null;
  #model: string | null = null;
  #usage: Usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };

  *read(chunk: ChatCompletionChunk): Generator<SampleEvent> {
    this.#model ??= chunk.model || null;
    if (chunk.usage)
      this.#usage = {
        prompt_tokens: chunk.usage.prompt_tokens ?? null,
        cached_tokens: chunk.usage.prompt_tokens_details?.cached_tokens ?? null,
        sampled_tokens: chunk.usage.completion_tokens ?? null,
        reasoning_tokens: chunk.usage.completion_tokens_details?.reasoning_tokens ?? null,
      };
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const delta: ChatCompletionChunk.Choice.Delta & { reasoning?: unknown; reasoning_content?: unknown } = choice.delta ?? {};
    // Not OpenAI's, but what others of this shape call it.
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (typeof reasoning === "string" && reasoning !== "") yield { type: "reasoning-delta", text: reasoning };
    const text = delta.content || delta.refusal;
    if (text && this.#pending && argumentsObject(this.#pending.arguments)) yield* this.#flush();
    if (text && this.#pending) this.#pending.behind += text;
    else if (text) yield { type: "text-delta", text };
    for (const fragment of delta.tool_calls ?? []) {
      if (this.#pending === null || isAnother(this.#pending, fragment)) {
        yield* this.#flush();
        this.#pending = { index: fragment.index, id: "", name: "", arguments: "", behind: "" };
      }
      this.#pending.id ||= fragment.id ?? "";
      this.#pending.name ||= fragment.function?.name ?? "";
      this.#pending.arguments += fragment.function?.arguments ?? "";
    }
    if (choice.finish_reason) this.#finish = chatFinish(choice.finish_reason);
  }

  *end(baseUrl: string): Generator<SampleEvent> {
    if (this.#finish === null) throw new AlidadeError("engine_error", `the engine at ${baseUrl} ended its answer without a finish reason`);
    yield* this.#flush();
    yield { type: "end", finish_reason: this.#finish, stop: null, usage: this.#usage, engine_model: this.#model };
  }

  *#flush(): Generator<SampleEvent> {
    if (!this.#pending) return;
    const { id, name, arguments: text, behind } = this.#pending;
    this.#pending = null;
    yield { type: "tool-call", id, name, arguments: text };
    if (behind !== "") yield { type: "text-delta", text: behind };
  }
}

/**
 * Whether this fragment begins the next call. Some servers number every call 0, or none, and separate calls by ids; others
 * give each fragment its own id, but no name.
 */
function isAnother(pending: { index: number | undefined; id: string }, fragment: ChatCompletionChunk.Choice.Delta.ToolCall): boolean {
  return (
    pending.index !== fragment.index || (pending.id !== "" && !!fragment.id && fragment.id !== pending.id && !!fragment.function?.name)
  );
}
