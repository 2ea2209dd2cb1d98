/** What the contract suite has every dialect say to its vendor's own client, and which of it has a place on which wire. */

import { AlidadeError } from "../../base/errors.ts";
import type { FinishReason, Part, Turn, Usage } from "../../base/schema/message.ts";
import type { Dialect } from "../../proxy/dialects/dialect.ts";

export const callId = "callabcdefghij0123456789";
export const usage: Usage = { prompt_tokens: 100, cached_tokens: 64, sampled_tokens: 20, reasoning_tokens: 5 };
export const unknownUsage: Usage = { prompt_tokens: null, cached_tokens: null, sampled_tokens: null, reasoning_tokens: null };

export type Case = { title: string; turn: Turn; custom?: string[]; fault?: { after: number; error: AlidadeError }; refuse?: AlidadeError };

export const text = (value: string): Part => ({ type: "text", text: value });
const reasoning = (value: string): Part => ({ type: "reasoning", text: value });
const call = (name: string, rawArguments: string): Part => ({
  type: "tool_call",
  id: `chatcmpl-tool-${name}`,
  name,
  arguments: rawArguments,
  kind: "function",
});
export const turnOf = (parts: Part[], finish: FinishReason = "stop", more: Partial<Turn> = {}): Turn => ({
  message: { role: "assistant", parts },
  finish_reason: finish,
  stop: null,
  usage,
  ...more,
});

const spaced = '{ "path" :  "é\\u00e9",  "n": 1.0, "list":[1,2] }';
export const cases: Case[] = [
  { title: "text", turn: turnOf([text("Hello."), text(" Again.")]) },
  { title: "reasoning before text", turn: turnOf([reasoning("\n\n think é  \n"), text("Done.")]) },
  { title: "a tool call", turn: turnOf([call("read", spaced)], "tool_calls") },
  { title: "parallel tool calls", turn: turnOf([call("read", '{"a":1}'), call("read", '{"a":1}'), call("write", "{}")], "tool_calls") },
  { title: "reasoning, text and a call", turn: turnOf([reasoning("hm"), text("Sure."), call("read", spaced)], "tool_calls") },
  { title: "a call without arguments", turn: turnOf([call("list", "")], "tool_calls") },
  { title: "calls under finish reason stop", turn: turnOf([call("read", "{}")], "stop") },
  { title: "an empty answer", turn: turnOf([]) },
  { title: "reasoning alone", turn: turnOf([reasoning("only")], "length") },
  { title: "a stop by length", turn: turnOf([text("cut he")], "length") },
  { title: "a stop string", turn: turnOf([text("before")], "stop", { stop: "Observation:" }) },
  { title: "a content filter", turn: turnOf([text("no")], "content_filter") },
  { title: "unicode", turn: turnOf([text('e\u0301 👩‍👩‍👧 \u2028 \u0000 "quoted"\r\nline\ttab 中文')]) },
  { title: "white space only", turn: turnOf([text(" \n\n "), call("read", "{}")], "tool_calls") },
  { title: "malformed arguments", turn: turnOf([call("read", '{"path": "a'), call("list", "[1]")], "tool_calls") },
  { title: "usage without counts", turn: turnOf([text("Hi")], "stop", { usage: unknownUsage }) },
  {
    title: "a custom tool's input",
    turn: turnOf([call("apply_patch", '{"input": "*** Begin Patch\\n\\"x\\"\\n*** End Patch"}')], "tool_calls"),
    custom: ["apply_patch"],
  },
  { title: "a custom tool's malformed input", turn: turnOf([call("apply_patch", "*** Begin")], "tool_calls"), custom: ["apply_patch"] },
];

export const faults: Case[] = [
  {
    title: "an error in the middle of the stream",
    turn: turnOf([text("one"), text("two")]),
    fault: { after: 1, error: new AlidadeError("engine_error", "The engine broke off.") },
  },
  {
    title: "an error before any output",
    turn: turnOf([]),
    fault: { after: 0, error: new AlidadeError("engine_error", "It broke.") },
  },
];

/** The client that reads each dialect's answers in the suite. */
export const readers: Record<string, string> = {
  "openai-chat": "`openai`",
  "openai-responses": "`openai`",
  "anthropic-messages": "`@anthropic-ai/sdk`",
  "google-generate-content": "`@google/genai`",
  "openai-completions": "`openai`",
};

/** Dialects whose wire has objects where others have the text of a tool call's arguments, and no freeform tools. */
export const wantsObjects = ["anthropic-messages", "google-generate-content"];

export function isSayable(dialect: Pick<Dialect, "name">, one: Case): boolean {
  if (one.custom && wantsObjects.includes(dialect.name)) return false;
  return dialect.name !== "openai-completions" || one.turn.message.parts.every((part) => part.type === "text");
}
