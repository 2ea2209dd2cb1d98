/**
 * Reads a turn's text as it comes: reasoning between `<think>` tags at the start, tool calls, and content around them.
 * What the tags are separated by belongs to the template, so that a turn sent back prints as it was sampled. A call
 * that is not well-formed stays text: nothing that was sampled is repaired or lost.
 */
import { readToolCall } from "./tool-call.ts";

export type TurnDelta =
  | { type: "reasoning"; text: string }
  | { type: "content"; text: string }
  | { type: "tool_call"; name: string; arguments: string };

const thinkOpen = "<think>";
const thinkClose = "</think>";
const callOpen = "<tool_call>";
const callClose = "</tool_call>";

export class TurnParser {
  readonly #tools: boolean;
  #state: "start" | "reasoning" | "after reasoning" | "content" | "call" | "after call" = "start";
  #held = "";
  /** The line break before `<tool_call>`, which the template writes; needed again if the call is none. */
  #separator = "";
  #afterCall = false;

  /** Without `tools` a `<tool_call>` is plain text. */
  constructor(options: { tools: boolean }) {
    this.#tools = options.tools;
  }

  get reasoning(): boolean {
    return this.#state === "reasoning";
  }

  feed(text: string): TurnDelta[] {
    this.#held += text;
    const deltas: TurnDelta[] = [];
    for (let moved = true; moved; ) moved = this.#move(deltas, false);
    return deltas.filter(says);
  }

  /** What was held back, once nothing follows. */
  finish(): TurnDelta[] {
    const deltas: TurnDelta[] = [];
    for (let moved = true; moved; ) moved = this.#move(deltas, true);
    return deltas.filter(says);
  }

  /** One step; false when it takes more text to go on. */
  #move(deltas: TurnDelta[], last: boolean): boolean {
    if (this.#state === "start") return this.#start(last);
    if (this.#state === "reasoning") return this.#readReasoning(deltas, last);
    if (this.#state === "after reasoning") return this.#skipGap(last);
    if (this.#state === "content") return this.#readContent(deltas, last);
    if (this.#state === "call") return this.#readCall(deltas, last);
    return this.#readGap(last);
  }

  #start(last: boolean): boolean {
    if (this.#held.startsWith(thinkOpen)) {
      if (this.#held.length === thinkOpen.length && !last) return false;
      this.#held = this.#held.slice(thinkOpen.length).replace(/^\n/, "");
      this.#state = "reasoning";
    } else if (last || !thinkOpen.startsWith(this.#held)) this.#state = "content";
    return this.#state !== "start";
  }

  #readReasoning(deltas: TurnDelta[], last: boolean): boolean {
    const end = this.#held.indexOf(thinkClose);
    if (end === -1) {
      deltas.push({ type: "reasoning", text: this.#release(last, `\n${thinkClose}`, thinkClose) });
      return false;
    }
    deltas.push({ type: "reasoning", text: this.#held.slice(0, end).replace(/\n$/, "") });
    this.#held = this.#held.slice(end + thinkClose.length);
    this.#state = "after reasoning";
    return true;
  }

  #skipGap(last: boolean): boolean {
    if (!last && "\n\n".startsWith(this.#held) && this.#held !== "\n\n") return false;
    this.#held = this.#held.replace(/^\n{1,2}/, "");
    this.#state = "content";
    return true;
  }

  #readContent(deltas: TurnDelta[], last: boolean): boolean {
    const start = this.#tools ? this.#held.indexOf(callOpen) : -1;
    if (start === -1) {
      const text = this.#tools ? this.#release(last, `\n${callOpen}`, callOpen) : this.#release(true);
      deltas.push({ type: "content", text });
      return false;
    }
    const before = this.#held.slice(0, start);
    this.#separator = this.#afterCall && before.trim() === "" ? before : before.endsWith("\n") ? "\n" : "";
    this.#afterCall = false;
    deltas.push({ type: "content", text: before.slice(0, before.length - this.#separator.length) });
    this.#held = this.#held.slice(start + callOpen.length);
    this.#state = "call";
    return true;
  }

  #readCall(deltas: TurnDelta[], last: boolean): boolean {
    const end = this.#held.indexOf(callClose);
    if (end === -1 && !last) return false;
    const body = end === -1 ? this.#held : this.#held.slice(0, end);
    const call = readToolCall(body);
    const tail = end === -1 ? "" : callClose;
    if (call === null) deltas.push({ type: "content", text: this.#separator + callOpen + body + tail });
    else deltas.push({ type: "tool_call", ...call });
    this.#held = end === -1 ? "" : this.#held.slice(end + callClose.length);
    this.#state = call === null ? "content" : "after call";
    return true;
  }

  /** White space after a call waits: between calls it is the template's, before text it is text, at the end nothing. */
  #readGap(last: boolean): boolean {
    if (/^\s*$/.test(this.#held)) {
      if (last) this.#held = "";
      return false;
    }
    const text = this.#held.trimStart();
    if (!last && text.length < callOpen.length && callOpen.startsWith(text)) return false;
    this.#afterCall = text.startsWith(callOpen);
    this.#state = "content";
    return true;
  }

  /** Takes out the text that can be sent now: all of it, or all but an ending that may begin a tag. */
  #release(all: boolean, ...tags: string[]): string {
    const keep = all ? 0 : heldBack(this.#held, tags);
    const text = this.#held.slice(0, this.#held.length - keep);
    this.#held = this.#held.slice(this.#held.length - keep);
    return text;
  }
}

/** Length of the longest ending of `text` with which one of `tags` may begin. */
export function heldBack(text: string, tags: readonly string[]): number {
  let longest = 0;
  for (const tag of tags)
    for (let length = Math.min(text.length, tag.length - 1); length > longest; length -= 1)
      if (tag.startsWith(text.slice(text.length - length))) longest = length;
  return longest;
}

function says(delta: TurnDelta): boolean {
  return delta.type === "tool_call" || delta.text !== "";
}
