/** A response, event by event or whole. */

import type { AlidadeError } from "../../../base/errors.ts";
import type { JsonObject } from "../../../base/schema/message.ts";
import type { SampledToken } from "../../../base/schema/sampled-token.ts";
import { type AnswerableFinish, answerable } from "../answerable.ts";
import { carrierOf } from "../carrier.ts";
import type { AnswerContext, SseFrame, StreamWriter, TurnEvent } from "../dialect.ts";
import { shownToken } from "../openai/logprobs.ts";
import { callItem } from "./call-item.ts";
import { itemId } from "./item-id.ts";
import { failure, responseObject, usageOf } from "./response-object.ts";
import { tokensOfText } from "./text-tokens.ts";

/** The item that deltas go to. A tool call is never one: it comes whole. */
type OpenItem = { kind: "msg" | "rs"; id: string; text: string };

/** What differs between a text and a reasoning item: the same events under other names. */
const forms = {
  msg: {
    event: "response.output_text",
    part: (text: string, logprobs: unknown[]): JsonObject => ({ type: "output_text", text, annotations: [], logprobs }),
    extra: (logprobs: unknown[]): JsonObject => ({ logprobs }),
  },
  rs: {
    event: "response.reasoning_text",
    part: (text: string): JsonObject => ({ type: "reasoning_text", text }),
    extra: (): JsonObject => ({}),
  },
};

/** Builds the stream's events, and the same answer as one body: they cannot differ. */
export class ResponsesWriter implements StreamWriter {
  readonly #context: AnswerContext;
  #sequence = 0;
  #opened = false;
  #open: OpenItem | null = null;
  /** The call that came last: only what follows says whether it was cut off. */
  #call: JsonObject | null = null;
  #output: JsonObject[] = [];
  /** Those that no text has taken yet. */
  #tokens: SampledToken[] = [];
  #final: JsonObject | null = null;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  open(): SseFrame[] {
    if (this.#opened) return [];
    this.#opened = true;
    return ["response.created", "response.in_progress"].map((type) => this.#frame(type, { response: this.#response("in_progress") }));
  }

  event(event: TurnEvent): SseFrame[] {
    return [...this.open(), ...this.#write(event)];
  }

  /**
   * `response.in_progress` counts as activity with Codex, comments do not. Within an item an empty delta is sent instead: a
   * client that replaces its state by the response of a lifecycle event would lose the open item.
   */
  keepAlive(): SseFrame[] {
    const first = this.open();
    if (first.length > 0) return first;
    return [
      this.#open === null ? this.#frame("response.in_progress", { response: this.#response("in_progress") }) : this.#delta(this.#open, ""),
    ];
  }

  error(error: AlidadeError): SseFrame[] {
    return [...this.open(), this.#frame("response.failed", { response: this.#response("failed", { error: failure(error) }) })];
  }

  /** The answer as one body, once the end was written. */
  body(): JsonObject {
    return this.#final ?? this.#response("in_progress");
  }

  #write(event: TurnEvent): SseFrame[] {
    switch (event.type) {
      case "text-delta":
        return this.#text("msg", event.text);
      case "reasoning-delta":
        return this.#text("rs", event.text);
      case "tool-call":
        return [...this.#closeItem("completed"), ...this.#toolCall(event)];
      case "tokens":
        for (const token of event.tokens) this.#tokens.push(token);
        return [];
      case "end":
        return this.#end(event);
    }
  }

  #text(kind: OpenItem["kind"], text: string): SseFrame[] {
    if (text === "") return [];
    const frames = this.#open?.kind === kind ? [] : [...this.#closeItem("completed"), ...this.#openItem(kind)];
    const open = this.#open as OpenItem;
    open.text += text;
    return [...frames, this.#delta(open, text)];
  }

  #openItem(kind: OpenItem["kind"]): SseFrame[] {
    this.#open = { kind, id: itemId(kind, this.#context.call_id, this.#output.length), text: "" };
    return [
      this.#frame("response.output_item.added", { output_index: this.#output.length, item: this.#item(this.#open, "in_progress", []) }),
      this.#frame("response.content_part.added", { ...this.#place(this.#open), part: forms[kind].part("", []) }),
    ];
  }

  /** Logprobs come with the whole text: only that tells which of the tokens are its own. */
  #delta(open: OpenItem, delta: string): SseFrame {
    return this.#frame(`${forms[open.kind].event}.delta`, { ...this.#place(open), delta, ...forms[open.kind].extra([]) });
  }

  #closeItem(status: "completed" | "incomplete"): SseFrame[] {
    const [call, open] = [this.#call, this.#open];
    [this.#call, this.#open] = [null, null];
    if (call !== null) return [this.#done({ ...call, status })];
    if (open === null) return [];
    const form = forms[open.kind];
    const logprobs = this.#takeTokens(open.text).map(shownToken);
    const part = form.part(open.text, logprobs);
    const frames = [
      this.#frame(`${form.event}.done`, { ...this.#place(open), text: open.text, ...form.extra(logprobs) }),
      this.#frame("response.content_part.done", { ...this.#place(open), part }),
    ];
    return [...frames, this.#done(this.#item(open, status, [part]))];
  }

  /** Those of this text, in order; none where they do not spell it. */
  #takeTokens(text: string): SampledToken[] {
    const place = tokensOfText(this.#tokens, text);
    if (place === null) return [];
    const own = this.#tokens.slice(place.start, place.end);
    this.#tokens = this.#tokens.slice(place.end);
    return own;
  }

  #item(open: OpenItem, status: string, content: JsonObject[]): JsonObject {
    if (open.kind === "msg") return { id: open.id, type: "message", status, role: "assistant", content };
    return { id: open.id, type: "reasoning", status, summary: [], content, encrypted_content: carrierOf(this.#context.call_id) };
  }

  /** Arguments go out in one delta, exactly as they were sampled. Those that fit a built-in tool's form are whole. */
  #toolCall(event: Extract<TurnEvent, { type: "tool-call" }>): SseFrame[] {
    const { idKind, fields, text } = callItem(event.name, event.arguments, this.#context);
    const id = itemId(idKind, this.#context.call_id, this.#output.length);
    const item = { id, call_id: event.id, ...fields };
    const place = { item_id: id, output_index: this.#output.length };
    const begun = { ...item, ...(text && { [text.field]: "" }), status: "in_progress" };
    const added = this.#frame("response.output_item.added", { output_index: this.#output.length, item: begun });
    if (text === null) return [added, this.#done({ ...item, status: "completed" })];
    this.#call = { ...item, [text.field]: text.value, status: "in_progress" };
    return [
      added,
      ...(text.value === "" ? [] : [this.#frame(`${text.event}.delta`, { ...place, delta: text.value })]),
      this.#frame(`${text.event}.done`, { ...place, [text.field]: text.value }),
    ];
  }

  #done(item: JsonObject): SseFrame {
    const frame = this.#frame("response.output_item.done", { output_index: this.#output.length, item });
    this.#output.push(item);
    return frame;
  }

  #end(event: Extract<TurnEvent, { type: "end" }>): SseFrame[] {
    const reason = incompleteReason(answerable(event.finish_reason));
    const status = reason === null ? "completed" : "incomplete";
    const frames = this.#closeItem(status);
    const details = reason === null ? null : { reason };
    this.#final = this.#response(status, { incomplete_details: details, usage: usageOf(event.usage) });
    return [...frames, this.#frame(`response.${status}`, { response: this.#final })];
  }

  #place(open: OpenItem): JsonObject {
    return { item_id: open.id, output_index: this.#output.length, content_index: 0 };
  }

  #response(status: string, fields: JsonObject = {}): JsonObject {
    const output = this.#call === null ? [...this.#output] : [...this.#output, this.#call];
    return responseObject(this.#context, { status, output, ...fields });
  }

  #frame(type: string, fields: JsonObject): SseFrame {
    return { event: type, data: JSON.stringify({ type, sequence_number: this.#sequence++, ...fields }) };
  }
}

function incompleteReason(reason: AnswerableFinish): string | null {
  if (reason === "length") return "max_output_tokens";
  return reason === "content_filter" ? "content_filter" : null;
}
