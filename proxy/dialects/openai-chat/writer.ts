/** A chat completion, chunk by chunk or whole. */
import type { AlidadeError } from "../../../base/errors.ts";
import { GrowingText } from "../../../base/wire/growing-text.ts";
import { type AnswerableFinish, answerable } from "../answerable.ts";
import type { AnswerContext, SseFrame, StreamWriter, TurnEvent } from "../dialect.ts";
import { isObject } from "../edge.ts";
import { customInput } from "../openai/custom-tool.ts";
import { openaiErrorBody } from "../openai/error.ts";
import { type ShownToken, shownToken } from "../openai/logprobs.ts";
import { openaiUsage } from "../openai/usage.ts";
import { choiceIndex } from "../several-samples.ts";

/** Builds the stream's chunks, and the same answer as one body: they cannot differ. */
export class ChatWriter implements StreamWriter {
  readonly #context: AnswerContext;
  readonly #reasoningField: string;
  readonly #index: number;
  #opened = false;
  readonly #text = new GrowingText();
  readonly #reasoning = new GrowingText();
  /** The chunk of a text of this field, in front of the text and behind it. */
  #form = { field: "", before: "", behind: "" };
  #calls: Record<string, unknown>[] = [];
  readonly #tokens: ShownToken[] = [];
  /** Number of `#tokens` that were already sent. The next chunk sends the rest. */
  #shown = 0;
  #finish: AnswerableFinish | null = null;
  #usage: Record<string, unknown> | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#index = choiceIndex(context);
    this.#reasoningField = context.native.reasoning_field === "reasoning" ? "reasoning" : "reasoning_content";
  }

  open(): SseFrame[] {
    if (this.#opened) return [];
    this.#opened = true;
    return [this.#chunk({ role: "assistant", content: "" })];
  }

  event(event: TurnEvent): SseFrame[] {
    return this.#opened ? this.#write(event) : [...this.open(), ...this.#write(event)];
  }

  /** An empty delta: comments do not count as activity with every client. */
  keepAlive(): SseFrame[] {
    return [...this.open(), this.#chunk({})];
  }

  /**
   * No `[DONE]` after it: the stream did not come to its end. The status goes into the sentence, for a stream has no
   * other place for it: by it Pi sees that another try is worth while.
   */
  error(error: AlidadeError): SseFrame[] {
    const body = openaiErrorBody(error);
    return [{ data: JSON.stringify({ error: { ...body, message: `${error.status} ${body.message}` } }) }];
  }

  /** The answer as one body, once the end was written. */
  body(): Record<string, unknown> {
    const [text, reasoning] = [String(this.#text), String(this.#reasoning)];
    const message = {
      role: "assistant",
      // As OpenAI does: null beside calls, and a string where there is nothing else.
      content: text === "" && this.#calls.length > 0 ? null : text,
      refusal: null,
      ...(reasoning !== "" && { [this.#reasoningField]: reasoning }),
      ...(this.#calls.length > 0 && { tool_calls: this.#calls }),
    };
    return {
      ...this.#head("chat.completion"),
      choices: [{ index: this.#index, message, logprobs: logprobsOf(this.#tokens), finish_reason: this.#finish }],
      ...(this.#usage && { usage: this.#usage }),
    };
  }

  #write(event: TurnEvent): SseFrame[] {
    switch (event.type) {
      case "text-delta":
        this.#text.append(event.text);
        return this.#piece("content", event.text);
      case "reasoning-delta":
        this.#reasoning.append(event.text);
        return this.#piece(this.#reasoningField, event.text);
      case "tool-call":
        return [this.#toolCall(event)];
      case "tokens":
        for (const token of event.tokens) this.#tokens.push(shownToken(token));
        return [];
      case "end":
        return this.#end(event);
    }
  }

  /** The chunk of a token: nothing of it but the text differs from the one before. */
  #piece(field: string, text: string): SseFrame[] {
    if (text === "") return [];
    if (this.#shown < this.#tokens.length) return [this.#chunk({ [field]: text })];
    if (this.#form.field !== field) {
      const { data } = this.#chunk({ [field]: "" });
      // There is no text behind the delta, so these are its quotation marks.
      const at = data.lastIndexOf('""');
      this.#form = { field, before: data.slice(0, at), behind: data.slice(at + 2) };
    }
    return [{ data: `${this.#form.before}${JSON.stringify(text)}${this.#form.behind}` }];
  }

  /** Each call whole in one chunk: some clients put fragments of arguments together wrongly. */
  #toolCall(event: Extract<TurnEvent, { type: "tool-call" }>): SseFrame {
    const call = this.#context.custom_tools.has(event.name)
      ? { id: event.id, type: "custom", custom: { name: event.name, input: customInput(event.arguments) } }
      : { id: event.id, type: "function", function: { name: event.name, arguments: event.arguments } };
    const index = this.#calls.push(call) - 1;
    return this.#chunk({ tool_calls: [{ index, ...call }] });
  }

  #end(event: Extract<TurnEvent, { type: "end" }>): SseFrame[] {
    const reason = answerable(event.finish_reason);
    // With a forced tool an engine ends with "stop"; clients look for calls under "tool_calls".
    this.#finish = reason === "stop" && this.#calls.length > 0 ? "tool_calls" : reason;
    this.#usage = openaiUsage(event.usage);
    const options = this.#context.native.stream_options;
    const wanted = isObject(options) && options.include_usage === true && this.#usage !== null;
    return [
      this.#chunk({}, this.#finish),
      ...(wanted ? [{ data: JSON.stringify({ ...this.#head("chat.completion.chunk"), choices: [], usage: this.#usage }) }] : []),
      { data: "[DONE]" },
    ];
  }

  #chunk(delta: Record<string, unknown>, finish: AnswerableFinish | null = null): SseFrame {
    const logprobs = logprobsOf(this.#tokens.slice(this.#shown));
    this.#shown = this.#tokens.length;
    const choices = [{ index: this.#index, delta, logprobs, finish_reason: finish }];
    return { data: JSON.stringify({ ...this.#head("chat.completion.chunk"), choices }) };
  }

  #head(object: string): Record<string, unknown> {
    return { id: `chatcmpl-${this.#context.call_id}`, object, created: this.#context.created, model: this.#context.model };
  }
}

/** Every sampled token, also of reasoning, of calls and of the end, as engines with this route list them. */
function logprobsOf(tokens: readonly ShownToken[]): Record<string, unknown> | null {
  return tokens.length === 0 ? null : { content: tokens, refusal: null };
}
