/** Anthropic's hosted Messages API, through Anthropic's own SDK. Text only: see hosted.ts. */
import type Anthropic from "@anthropic-ai/sdk";
import type { MessageCreateParamsStreaming, RawMessageStreamEvent } from "@anthropic-ai/sdk/resources/messages";
import { AlidadeError } from "../base/errors.ts";
import type { FinishReason, Usage } from "../base/schema/message.ts";
import type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";
import { toAnthropicMessages, toAnthropicTools } from "./hosted/anthropic-conversation.ts";
import { HostedConnections, hostedFacts, hostedFailure, noTimeoutMs, refusePromptIds, takeSampling } from "./hosted/hosted.ts";

export const anthropic: EngineKind = {
  name: "anthropic",
  title: "Anthropic's hosted API: text only, for distillation and evaluation",
  defaultUrl: "https://api.anthropic.com",
  create: (options) => new AnthropicEngine(options),
};

/** The API requires a limit in every request. Its smaller models refuse more than this; a request may name a higher one. */
const defaultMaxTokens = 8_192;

const ownNames = { temperature: "temperature", top_p: "top_p", top_k: "top_k", stop: "stop_sequences", max_tokens: "max_tokens" };

/** There is one system prompt, before the conversation; what comes later is a user's turn. */
const roles = { developer: "system", "system (later)": "user" };

class AnthropicEngine implements Engine {
  readonly name = "anthropic";
  readonly baseUrl: string;
  readonly #apiKey: string | null;
  readonly #connections = new HostedConnections();
  #client: Promise<Anthropic> | null = null;

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, "").replace(/\/v1$/, "");
    this.#apiKey = options.apiKey;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    try {
      const page = await (await this.#sdk()).models.list({ limit: 1_000 }, { signal });
      return hostedFacts(
        this.name,
        this.baseUrl,
        page.data.map((model) => model.id),
        roles,
      );
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal);
    }
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    refusePromptIds(this.name, request);
    const body = toBody(request);
    let began = false;
    try {
      const stream = await (await this.#sdk()).messages.create(body, { signal });
      yield { type: "accepted", status: 200 };
      began = true;
      const turn = new MessageTurn();
      for await (const event of stream) yield* turn.read(event);
      // The SDK ends an aborted stream like a finished one.
      signal.throwIfAborted();
      yield turn.end(this.baseUrl);
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal, began);
    }
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number> {
    const { messages, system } = toAnthropicMessages(request.messages);
    const tools = request.tools.length > 0 ? { tools: toAnthropicTools(request.tools) } : {};
    const body = { model: request.model, messages, ...(system === "" ? {} : { system }), ...tools };
    try {
      return (await (await this.#sdk()).messages.countTokens(body, { signal })).input_tokens;
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal);
    }
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  #sdk(): Promise<Anthropic> {
    this.#client ??= openSdk(this.baseUrl, this.#apiKey, this.#connections);
    return this.#client;
  }
}

/** Loaded on first use: an SDK costs a fifth of a second and 30 MB, and most proxies need none. */
async function openSdk(baseURL: string, apiKey: string | null, { fetch }: HostedConnections): Promise<Anthropic> {
  const { Anthropic } = await import("@anthropic-ai/sdk");
  return new Anthropic({
    // Every option is given here, so that the SDK reads no variable of the operator's shell.
    apiKey: apiKey ?? "none",
    authToken: null,
    webhookKey: null,
    baseURL,
    fetch,
    maxRetries: 0,
    timeout: noTimeoutMs,
    logLevel: "off",
    openTelemetry: false,
  });
}

function toBody(request: SampleRequest): MessageCreateParamsStreaming {
  const { messages, system } = toAnthropicMessages(request.messages);
  const { top_k, ...sampling } = request.sampling;
  return {
    model: request.model,
    messages,
    max_tokens: defaultMaxTokens,
    ...(system === "" ? {} : { system }),
    ...(request.tools.length > 0 ? { tools: toAnthropicTools(request.tools), tool_choice: toToolChoice(request) } : {}),
    ...takeSampling("anthropic", { ...sampling, ...(top_k !== undefined && top_k > 0 ? { top_k } : {}) }, ownNames),
    stream: true,
  };
}

function toToolChoice(request: SampleRequest): Anthropic.ToolChoice {
  const choice = request.tool_choice ?? "auto";
  if (choice === "none") return { type: "none" };
  const one = request.sampling.parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {};
  if (choice === "auto") return { type: "auto", ...one };
  return choice === "required" ? { type: "any", ...one } : { type: "tool", name: choice.name, ...one };
}

/** Stream events in, ours out; a tool call leaves when its block ends. */
class MessageTurn {
  #call: { id: string; name: string; arguments: string; whole: unknown } | null = null;
  #finish: FinishReason | null = null;
  #stop: string | null = null;
  #model: string | null = null;
  #usage: Usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };

  *read(event: RawMessageStreamEvent): Generator<SampleEvent> {
    switch (event.type) {
      case "message_start": {
        const { usage, model } = event.message;
        const cached = usage.cache_read_input_tokens ?? 0;
        this.#model = model;
        // Here the input is what no cache had.
        this.#usage.prompt_tokens = usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0);
        this.#usage.cached_tokens = usage.cache_read_input_tokens ?? null;
        return;
      }
      case "content_block_start":
        if (event.content_block.type === "tool_use") {
          const { id, name, input } = event.content_block;
          this.#call = { id, name, arguments: "", whole: input };
        } else if (event.content_block.type === "text" && event.content_block.text !== "")
          yield { type: "text-delta", text: event.content_block.text };
        return;
      case "content_block_delta":
        if (event.delta.type === "text_delta") yield { type: "text-delta", text: event.delta.text };
        else if (event.delta.type === "thinking_delta") yield { type: "reasoning-delta", text: event.delta.thinking };
        else if (event.delta.type === "input_json_delta" && this.#call) this.#call.arguments += event.delta.partial_json;
        return;
      case "content_block_stop":
        if (this.#call) {
          const { id, name, arguments: text, whole } = this.#call;
          // A call without arguments streams no JSON; the block's own input says what it is.
          yield { type: "tool-call", id, name, arguments: text === "" ? JSON.stringify(whole ?? {}) : text };
        }
        this.#call = null;
        return;
      case "message_delta":
        this.#usage.sampled_tokens = event.usage.output_tokens;
        this.#stop = event.delta.stop_sequence ?? null;
        if (event.delta.stop_reason) this.#finish = finishReasons.get(event.delta.stop_reason) ?? "error";
        return;
      case "message_stop":
        return;
    }
  }

  end(baseUrl: string): SampleEvent {
    if (this.#finish === null) throw new AlidadeError("engine_error", `the engine at ${baseUrl} ended its answer without a stop reason`);
    return { type: "end", finish_reason: this.#finish, stop: this.#stop, usage: this.#usage, engine_model: this.#model };
  }
}

const finishReasons = new Map<string, FinishReason>([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["tool_use", "tool_calls"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"],
]);
