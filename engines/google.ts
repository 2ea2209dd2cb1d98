/** Google's hosted Gemini API (generateContent), through Google's own SDK. Text only: see hosted.ts. */
import type {
  Content,
  FunctionCallingConfigMode,
  GenerateContentConfig,
  GenerateContentResponse,
  GoogleGenAI,
  Part as WirePart,
} from "@google/genai";
import { AlidadeError } from "../base/errors.ts";
import { imageUrl } from "../base/media/stored-picture.ts";
import { argumentsObject } from "../base/schema/arguments.ts";
import type { FinishReason, Message, Part, Tool, Usage } from "../base/schema/message.ts";
import { schemaAsWritten } from "../base/wire/tool-schema.ts";
import { readImageUrl } from "./chat/data-url.ts";
import type { Engine, EngineFacts, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";
import { HostedConnections, hostedFacts, hostedFailure, noTimeoutMs, refusePromptIds, takeSampling } from "./hosted/hosted.ts";

export const google: EngineKind = {
  name: "google",
  title: "Google's hosted Gemini API: text only, for distillation and evaluation",
  defaultUrl: "https://generativelanguage.googleapis.com",
  create: (options) => new GoogleEngine(options),
};

const ownNames = {
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  stop: "stopSequences",
  seed: "seed",
  max_tokens: "maxOutputTokens",
  presence_penalty: "presencePenalty",
  frequency_penalty: "frequencyPenalty",
};

/** There is one system instruction, before the conversation; what comes later is a user's turn. */
const roles = { developer: "system", "system (later)": "user" };

/** A hosted API lists its models in pages; a proxy needs to know the names that people use, not all that there ever were. */
const maxModels = 500;

class GoogleEngine implements Engine {
  readonly name = "google";
  readonly baseUrl: string;
  readonly #apiKey: string | null;
  readonly #connections = new HostedConnections();
  #client: Promise<GoogleGenAI> | null = null;

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, "");
    this.#apiKey = options.apiKey;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    try {
      const names: string[] = [];
      for await (const model of await (await this.#sdk()).models.list({ config: { abortSignal: signal, pageSize: 100 } })) {
        names.push((model.name ?? "").replace(/^models\//, ""));
        if (names.length >= maxModels) break;
      }
      return hostedFacts(this.name, this.baseUrl, names, roles);
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal);
    }
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    refusePromptIds(this.name, request);
    const { contents, config } = toRequest(request);
    // The SDK's stream has no way to leave it early but the signal.
    const left = new AbortController();
    const abortSignal = AbortSignal.any([signal, left.signal]);
    let began = false;
    try {
      const stream = await (await this.#sdk()).models.generateContentStream({
        model: request.model,
        contents,
        config: { ...config, abortSignal },
      });
      yield { type: "accepted", status: 200 };
      began = true;
      const turn = new GeminiTurn();
      for await (const chunk of stream) yield* turn.read(chunk);
      signal.throwIfAborted();
      yield turn.end(this.baseUrl);
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal, began);
    } finally {
      left.abort();
    }
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages">, signal: AbortSignal): Promise<number> {
    try {
      const { contents } = toContents(request.messages);
      const counted = await (await this.#sdk()).models.countTokens({ model: request.model, contents, config: { abortSignal: signal } });
      return counted.totalTokens ?? 0;
    } catch (error) {
      throw hostedFailure(error, this.baseUrl, signal);
    }
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  #sdk(): Promise<GoogleGenAI> {
    this.#client ??= openSdk(this.baseUrl, this.#apiKey, this.#connections);
    return this.#client;
  }
}

/** Loaded on first use: an SDK costs a fifth of a second and 30 MB, and most proxies need none. */
async function openSdk(baseUrl: string, apiKey: string | null, { fetch }: HostedConnections): Promise<GoogleGenAI> {
  const { GoogleGenAI } = await import("@google/genai");
  // Every option is given here, so that the SDK reads no variable of the operator's shell.
  return new GoogleGenAI({ apiKey: apiKey ?? "none", vertexai: false, httpOptions: { baseUrl, fetch, timeout: noTimeoutMs } });
}

function toRequest(request: SampleRequest): { contents: Content[]; config: GenerateContentConfig } {
  const { contents, system } = toContents(request.messages);
  const { top_k, parallel_tool_calls: _, ...sampling } = request.sampling;
  const config: GenerateContentConfig = {
    ...takeSampling("google", { ...sampling, ...(top_k !== undefined && top_k > 0 ? { top_k } : {}) }, ownNames),
    ...(system === "" ? {} : { systemInstruction: system }),
    ...(request.tools.length > 0
      ? { tools: [{ functionDeclarations: request.tools.map(toDeclaration) }], toolConfig: toolConfig(request) }
      : {}),
  };
  return { contents, config };
}

function toDeclaration(tool: Tool) {
  return {
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...(tool.parameters === null ? {} : { parametersJsonSchema: schemaAsWritten(tool) }),
  };
}

/** An enum of the SDK; its values are these words, and importing it would load the SDK. */
const modes = { auto: "AUTO", none: "NONE", required: "ANY" } as Record<"auto" | "none" | "required", FunctionCallingConfigMode>;

function toolConfig(request: SampleRequest): GenerateContentConfig["toolConfig"] {
  const choice = request.tool_choice ?? "auto";
  if (typeof choice === "string") return { functionCallingConfig: { mode: modes[choice] } };
  return { functionCallingConfig: { mode: modes.required, allowedFunctionNames: [choice.name] } };
}

/** Function results name their function and not only their call, so the calls before them are remembered. */
function toContents(messages: Message[]): { system: string; contents: Content[] } {
  const begins = messages.findIndex((message) => message.role !== "system" && message.role !== "developer");
  const head = begins === -1 ? messages : messages.slice(0, begins);
  const system = head.map((message) => message.parts.map((part) => (part.type === "text" ? part.text : "")).join("")).join("\n\n");
  const names = new Map<string, string>();
  const contents: { role: string; parts: WirePart[] }[] = [];
  for (const message of messages.slice(head.length)) {
    const role = message.role === "assistant" ? "model" : "user";
    const parts = message.parts.flatMap((part) => toWireParts(part, names));
    if (parts.length === 0) continue;
    const last = contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else contents.push({ role, parts });
  }
  return { system, contents };
}

function toWireParts(part: Part, names: Map<string, string>): WirePart[] {
  switch (part.type) {
    case "text":
      return part.text === "" ? [] : [{ text: part.text }];
    case "image":
      return [toImage(imageUrl(part))];
    case "reasoning":
      return [];
    case "tool_call": {
      const args = part.kind === "custom" ? { input: part.arguments } : argumentsObject(part.arguments);
      // Arguments that are no JSON object do not fit a function call: they are sent as text, and so is their result.
      if (args === null) return [{ text: `${part.name}(${part.arguments})` }];
      names.set(part.id, part.name);
      return [{ functionCall: { id: part.id, name: part.name, args } }];
    }
    case "tool_result": {
      const text = part.content.map((one) => (one.type === "text" ? one.text : "")).join("");
      const images = part.content.flatMap((one) => (one.type === "image" ? [toImage(imageUrl(one))] : []));
      const name = names.get(part.call_id);
      if (name === undefined) return [{ text }, ...images];
      return [{ functionResponse: { id: part.call_id, name, response: part.is_error ? { error: text } : { output: text } } }, ...images];
    }
  }
}

function toImage(url: string): WirePart {
  const image = readImageUrl(url);
  return image ? { inlineData: { mimeType: image.mediaType, data: image.base64 } } : { fileData: { fileUri: url } };
}

class GeminiTurn {
  #finish: FinishReason | null = null;
  #called = false;
  #model: string | null = null;
  #usage: Usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };

  *read(chunk: GenerateContentResponse): Generator<SampleEvent> {
    this.#model ??= chunk.modelVersion ?? null;
    const counted = chunk.usageMetadata;
    if (counted)
      this.#usage = {
        prompt_tokens: counted.promptTokenCount ?? null,
        cached_tokens: counted.cachedContentTokenCount ?? null,
        sampled_tokens:
          counted.candidatesTokenCount === undefined ? null : counted.candidatesTokenCount + (counted.thoughtsTokenCount ?? 0),
        reasoning_tokens: counted.thoughtsTokenCount ?? null,
      };
    if (chunk.promptFeedback?.blockReason) this.#finish = "content_filter";
    const candidate = chunk.candidates?.[0];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.functionCall) {
        this.#called = true;
        const { id, name, args } = part.functionCall;
        yield { type: "tool-call", id: id ?? "", name: name ?? "", arguments: JSON.stringify(args ?? {}) };
      } else if (part.text) yield { type: part.thought ? "reasoning-delta" : "text-delta", text: part.text };
    }
    if (candidate?.finishReason) this.#finish = finishReasons.get(candidate.finishReason) ?? "error";
  }

  end(baseUrl: string): SampleEvent {
    if (this.#finish === null) throw new AlidadeError("engine_error", `the engine at ${baseUrl} ended its answer without a finish reason`);
    const finish_reason = this.#finish === "stop" && this.#called ? "tool_calls" : this.#finish;
    return { type: "end", finish_reason, stop: null, usage: this.#usage, engine_model: this.#model };
  }
}

const finishReasons = new Map<string, FinishReason>([
  ["STOP", "stop"],
  ["MAX_TOKENS", "length"],
  ["SAFETY", "content_filter"],
  ["RECITATION", "content_filter"],
  ["BLOCKLIST", "content_filter"],
  ["PROHIBITED_CONTENT", "content_filter"],
  ["SPII", "content_filter"],
]);
