/** A generateContent response, piece by piece or whole: on this wire every piece is a whole response object. */

import type { AlidadeError } from "../../../base/errors.ts";
import type { JsonObject, Usage } from "../../../base/schema/message.ts";
import type { SampledToken } from "../../../base/schema/sampled-token.ts";
import { type AnswerableFinish, answerable } from "../answerable.ts";
import { carrierOf } from "../carrier.ts";
import type { AnswerContext, SseFrame, StreamWriter, TurnEvent } from "../dialect.ts";
import { isObject } from "../edge.ts";
import { choiceIndex } from "../several-samples.ts";
import { toolInput } from "../tool-input.ts";
import { googleErrorBody } from "./error.ts";
import { averageLogprob, logprobsResult } from "./logprobs.ts";
import { camelKeys } from "./wire.ts";

/** Calls end a turn with STOP like words do. */
const finishReasons: Record<AnswerableFinish, string> = {
  stop: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY",
};

/** Builds the stream's pieces, and the same answer as one body: they cannot differ. */
export class GenerateContentWriter implements StreamWriter {
  readonly #context: AnswerContext;
  readonly #showsThoughts: boolean;
  #parts: JsonObject[] = [];
  readonly #tokens: SampledToken[] = [];
  /** How many of them are in the pieces so far: the next piece brings the others. */
  #shown = 0;
  #malformed: { candidate?: number; part: number; name: string }[] = [];
  /** A thought was sampled, and no call has carried its signature. */
  #owesSignature = false;
  #finish: string | null = null;
  #usage: JsonObject | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#showsThoughts = wantsThoughts(context.native.generationConfig);
  }

  /** Nothing: a first piece has no other form than the next ones. */
  open(): SseFrame[] {
    return [];
  }

  event(event: TurnEvent): SseFrame[] {
    switch (event.type) {
      case "text-delta":
        return this.#add(event.text === "" ? null : { text: event.text });
      case "reasoning-delta":
        this.#owesSignature ||= event.text !== "";
        // As Google does: thoughts are sent only on request.
        return this.#add(
          event.text === "" || !this.#showsThoughts ? null : { text: event.text, thought: true, thoughtSignature: this.#signature },
        );
      case "tool-call":
        this.#parts.push(this.#toolCall(event));
        return [this.#piece(this.#parts.slice(-1))];
      case "tokens":
        for (const token of event.tokens) this.#tokens.push(token);
        return [];
      case "end":
        this.#finish = finishReasons[answerable(event.finish_reason)];
        this.#usage = usageOf(event.usage);
        return this.#owesSignature ? this.#add({ text: "", thoughtSignature: this.#signature }) : [this.#piece([])];
    }
  }

  /** A piece without parts. SSE comments would break the vendor's own parser ("Incomplete JSON segment at the end"). */
  keepAlive(): SseFrame[] {
    return [this.#piece([])];
  }

  error(error: AlidadeError): SseFrame[] {
    return [{ data: JSON.stringify(googleErrorBody(error)) }];
  }

  /** The answer as one body, once the end was written. */
  body(): JsonObject {
    return this.#response(this.#parts, this.#tokens);
  }

  #add(part: JsonObject | null): SseFrame[] {
    if (part === null) return [];
    const last = this.#parts.at(-1);
    // Pieces of one text are one part of the whole.
    if (last && isText(part) && isText(last) && part.thought === last.thought)
      this.#parts[this.#parts.length - 1] = { ...last, ...part, text: `${last.text}${part.text}` };
    else this.#parts.push(part);
    return [this.#piece([part])];
  }

  /** This wire wants an object: arguments that are none go out as text, never as `{}`. */
  #toolCall(event: Extract<TurnEvent, { type: "tool-call" }>): JsonObject {
    const args = toolInput(event.arguments);
    if (args !== null) {
      this.#owesSignature = false;
      return { functionCall: { id: event.id, name: event.name, args }, thoughtSignature: this.#signature };
    }
    const place = this.#context.native.choice === undefined ? {} : { candidate: choiceIndex(this.#context) };
    this.#malformed.push({ ...place, part: this.#parts.length, name: event.name });
    return { text: event.arguments };
  }

  /** Clients send it back with the part: it names the call that sampled it, and stands for its thought. */
  get #signature(): string {
    return carrierOf(this.#context.call_id);
  }

  #piece(parts: JsonObject[]): SseFrame {
    const tokens = this.#tokens.slice(this.#shown);
    this.#shown = this.#tokens.length;
    return { data: JSON.stringify(this.#response(parts, tokens)) };
  }

  #response(parts: JsonObject[], tokens: readonly SampledToken[]): JsonObject {
    const { call_id, created, model } = this.#context;
    const average = this.#finish === null ? null : averageLogprob(this.#tokens);
    const candidate = {
      content: { role: "model", parts },
      ...(this.#finish !== null && { finishReason: this.#finish }),
      ...(tokens.length > 0 && { logprobsResult: logprobsResult(tokens) }),
      ...(average !== null && { avgLogprobs: average }),
      index: choiceIndex(this.#context),
    };
    return {
      candidates: [candidate],
      ...(this.#usage && { usageMetadata: this.#usage }),
      modelVersion: model,
      createTime: new Date(created * 1000).toISOString(),
      responseId: call_id,
      // Outside the content, so that no client sends it back.
      ...(this.#finish !== null && this.#malformed.length > 0 && { alidade: { malformed_tool_calls: this.#malformed } }),
    };
  }
}

function isText(part: JsonObject): boolean {
  return typeof part.text === "string";
}

function wantsThoughts(config: unknown): boolean {
  const thinking = isObject(config) ? camelKeys(config).thinkingConfig : null;
  return isObject(thinking) && camelKeys(thinking).includeThoughts === true;
}

/** Candidates exclude thoughts here. What the engine did not count is left out, as this API allows. */
function usageOf(usage: Usage): JsonObject | null {
  const { prompt_tokens, cached_tokens, sampled_tokens, reasoning_tokens } = usage;
  if (prompt_tokens === null || sampled_tokens === null) return null;
  return {
    promptTokenCount: prompt_tokens,
    ...(cached_tokens !== null && { cachedContentTokenCount: cached_tokens }),
    candidatesTokenCount: sampled_tokens - (reasoning_tokens ?? 0),
    ...(reasoning_tokens !== null && { thoughtsTokenCount: reasoning_tokens }),
    totalTokenCount: prompt_tokens + sampled_tokens,
  };
}
