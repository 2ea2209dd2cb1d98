/** A message, event by event or whole. */

import type { AlidadeError } from "../../../base/errors.ts";
import type { JsonObject, Usage } from "../../../base/schema/message.ts";
import { answerable } from "../answerable.ts";
import { carrierOf } from "../carrier.ts";
import type { AnswerContext, SseFrame, StreamWriter, TurnEvent } from "../dialect.ts";
import { toolInput } from "../tool-input.ts";
import { anthropicErrorBody } from "./error.ts";

type OpenBlock = { type: "text" | "thinking"; text: string };

/** Builds the stream's events, and the same answer as one body: they cannot differ. */
export class MessagesWriter implements StreamWriter {
  readonly #context: AnswerContext;
  #opened = false;
  #open: OpenBlock | null = null;
  #content: JsonObject[] = [];
  #malformed: { index: number; name: string }[] = [];
  #calls = 0;
  #end: JsonObject = { stop_reason: null, stop_sequence: null };
  #usage: JsonObject = unknownUsage;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  open(): SseFrame[] {
    if (this.#opened) return [];
    this.#opened = true;
    return [frame("message_start", { message: this.#message({ content: [] }) })];
  }

  event(event: TurnEvent): SseFrame[] {
    return [...this.open(), ...this.#write(event)];
  }

  keepAlive(): SseFrame[] {
    return [...this.open(), frame("ping", {})];
  }

  error(error: AlidadeError): SseFrame[] {
    return [{ event: "error", data: JSON.stringify(anthropicErrorBody(error)) }];
  }

  /** The answer as one body, once the end was written. */
  body(): JsonObject {
    return { ...this.#message({ content: this.#content }), ...this.#flag() };
  }

  #write(event: TurnEvent): SseFrame[] {
    switch (event.type) {
      case "text-delta":
        return this.#text("text", event.text);
      case "reasoning-delta":
        return this.#text("thinking", event.text);
      case "tool-call":
        return this.#toolCall(event);
      // No request here can ask for them.
      case "tokens":
        return [];
      case "end":
        return this.#finish(event);
    }
  }

  #text(type: OpenBlock["type"], text: string): SseFrame[] {
    if (text === "") return [];
    const frames = this.#open?.type === type ? [] : [...this.#close(), ...this.#start(type)];
    const open = this.#open as OpenBlock;
    open.text += text;
    const delta = type === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text };
    return [...frames, this.#delta(delta)];
  }

  #start(type: OpenBlock["type"]): SseFrame[] {
    this.#open = { type, text: "" };
    return [this.#blockStart(type === "text" ? { type, text: "" } : { type, thinking: "", signature: "" })];
  }

  #close(): SseFrame[] {
    const open = this.#open;
    if (open === null) return [];
    this.#open = null;
    if (open.type === "text") return this.#stop({ type: "text", text: open.text });
    const signature = carrierOf(this.#context.call_id);
    return [this.#delta({ type: "signature_delta", signature }), ...this.#stop({ type: "thinking", thinking: open.text, signature })];
  }

  /** Arguments stream as the sampled text. The wire requires an object, so invalid arguments are sent as text, never as `{}`. */
  #toolCall(event: Extract<TurnEvent, { type: "tool-call" }>): SseFrame[] {
    const closed = this.#close();
    const input = toolInput(event.arguments);
    if (input === null) {
      this.#malformed.push({ index: this.#content.length, name: event.name });
      return [...closed, ...this.#text("text", event.arguments), ...this.#close()];
    }
    this.#calls++;
    const block = { type: "tool_use", id: event.id, name: event.name };
    const delta = event.arguments.trim() === "" ? [] : [this.#delta({ type: "input_json_delta", partial_json: event.arguments })];
    return [...closed, this.#blockStart({ ...block, input: {} }), ...delta, ...this.#stop({ ...block, input })];
  }

  #finish(event: Extract<TurnEvent, { type: "end" }>): SseFrame[] {
    this.#end = this.#stopReason(event);
    this.#usage = usageOf(event.usage);
    return [...this.#close(), frame("message_delta", { delta: this.#end, usage: this.#usage, ...this.#flag() }), frame("message_stop", {})];
  }

  #stopReason(event: Extract<TurnEvent, { type: "end" }>): JsonObject {
    const reason = answerable(event.finish_reason);
    if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
    if (reason === "content_filter") return { stop_reason: "refusal", stop_sequence: null };
    // Clients wait for a block of that name: the calls that went out decide, not the ones that were sampled.
    if (this.#calls > 0) return { stop_reason: "tool_use", stop_sequence: null };
    // Only stop strings are the client's. A stop token id is the engine's own way to end a turn.
    if (typeof event.stop === "string") return { stop_reason: "stop_sequence", stop_sequence: event.stop };
    return { stop_reason: "end_turn", stop_sequence: null };
  }

  /** Tool calls that went out as text, by the index of their block: outside the content, so that no harness sends it back. */
  #flag(): JsonObject {
    return this.#malformed.length === 0 ? {} : { alidade: { malformed_tool_calls: this.#malformed } };
  }

  #message(fields: JsonObject): JsonObject {
    const { call_id, model } = this.#context;
    return { id: `msg_${call_id}`, type: "message", role: "assistant", model, ...fields, ...this.#end, usage: this.#usage };
  }

  #blockStart(block: JsonObject): SseFrame {
    return frame("content_block_start", { index: this.#content.length, content_block: block });
  }

  #delta(delta: JsonObject): SseFrame {
    return frame("content_block_delta", { index: this.#content.length, delta });
  }

  #stop(block: JsonObject): SseFrame[] {
    return [frame("content_block_stop", { index: this.#content.push(block) - 1 })];
  }
}

function frame(type: string, fields: JsonObject): SseFrame {
  return { event: type, data: JSON.stringify({ type, ...fields }) };
}

/**
 * `message_start` demands numbers before anything was counted, and the end demands them where the engine does not
 * count. 0 stands for "not known" there: the counts of `message_delta` replace those of `message_start`, in the
 * vendor's SDK and in Claude Code, and null stays on the record.
 */
const unknownUsage: JsonObject = {
  input_tokens: 0,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  output_tokens: 0,
};

/** Input here excludes what was read from the cache. */
function usageOf(usage: Usage): JsonObject {
  return {
    ...unknownUsage,
    ...(usage.prompt_tokens !== null && { input_tokens: usage.prompt_tokens - (usage.cached_tokens ?? 0) }),
    ...(usage.cached_tokens !== null && { cache_read_input_tokens: usage.cached_tokens }),
    ...(usage.sampled_tokens !== null && { output_tokens: usage.sampled_tokens }),
    ...(usage.reasoning_tokens !== null && { output_tokens_details: { thinking_tokens: usage.reasoning_tokens } }),
  };
}
