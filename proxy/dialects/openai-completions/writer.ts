/** A text completion, chunk by chunk or whole. */
import type { AlidadeError } from "../../../base/errors.ts";
import type { SampledToken } from "../../../base/schema/sampled-token.ts";
import { type AnswerableFinish, answerable } from "../answerable.ts";
import type { AnswerContext, SseFrame, StreamWriter, TurnEvent } from "../dialect.ts";
import { isObject } from "../edge.ts";
import { openaiErrorBody } from "../openai/error.ts";
import { openaiUsage } from "../openai/usage.ts";
import { choiceIndex } from "../several-samples.ts";
import { toLogprobs } from "./logprobs.ts";

/** Builds the stream's chunks, and the same answer as one body: they cannot differ. */
export class CompletionWriter implements StreamWriter {
  readonly #context: AnswerContext;
  #text = "";
  readonly #tokens: SampledToken[] = [];
  /** How many of them are in the chunks so far: the next chunk brings the others. */
  #shown = 0;
  /** Where the next of them stands in the text that all spell. */
  #offset = 0;
  #finish: AnswerableFinish | null = null;
  #usage: Record<string, unknown> | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  open(): SseFrame[] {
    return [];
  }

  event(event: TurnEvent): SseFrame[] {
    switch (event.type) {
      case "text-delta":
      case "reasoning-delta":
        return this.#say(event.text);
      // A plain completion has no calls; if an engine parses one, it is written as text.
      case "tool-call":
        return this.#say(event.arguments);
      case "tokens":
        for (const token of event.tokens) this.#tokens.push(token);
        return [];
      case "end":
        return this.#end(event);
    }
  }

  /** An empty chunk: comments do not count as activity with every client. */
  keepAlive(): SseFrame[] {
    return [this.#chunk("")];
  }

  /** No `[DONE]` after it: the stream did not come to its end. */
  error(error: AlidadeError): SseFrame[] {
    return [{ data: JSON.stringify({ error: openaiErrorBody(error) }) }];
  }

  /** The answer as one body, once the end was written. */
  body(): Record<string, unknown> {
    return { ...this.#piece(this.#text, this.#tokens, 0), ...(this.#usage && { usage: this.#usage }) };
  }

  #say(text: string): SseFrame[] {
    this.#text += text;
    return text === "" ? [] : [this.#chunk(text)];
  }

  #end(event: Extract<TurnEvent, { type: "end" }>): SseFrame[] {
    const reason = answerable(event.finish_reason);
    this.#finish = reason === "tool_calls" ? "stop" : reason;
    this.#usage = openaiUsage(event.usage);
    const options = this.#context.native.stream_options;
    const wanted = isObject(options) && options.include_usage === true && this.#usage !== null;
    const usage = { data: JSON.stringify({ ...this.#head(), choices: [], usage: this.#usage }) };
    return [this.#chunk(""), ...(wanted ? [usage] : []), { data: "[DONE]" }];
  }

  #chunk(text: string): SseFrame {
    const tokens = this.#tokens.slice(this.#shown);
    const piece = this.#piece(text, tokens, this.#offset);
    this.#shown = this.#tokens.length;
    this.#offset += tokens.reduce((sum, token) => sum + token.text.length, 0);
    return { data: JSON.stringify(piece) };
  }

  #piece(text: string, tokens: readonly SampledToken[], from: number): Record<string, unknown> {
    const logprobs = tokens.length === 0 ? null : toLogprobs(tokens, from);
    return { ...this.#head(), choices: [{ index: choiceIndex(this.#context), text, logprobs, finish_reason: this.#finish }] };
  }

  #head(): Record<string, unknown> {
    return { id: `cmpl-${this.#context.call_id}`, object: "text_completion", created: this.#context.created, model: this.#context.model };
  }
}
