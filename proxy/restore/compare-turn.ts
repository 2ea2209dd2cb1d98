/**
 * Compares an emitted turn with what came back. Changes by a serialiser (order of keys, spacing, ids, order of parallel
 * calls, outer white space, another place for invalid JSON) can be undone; anything else is an edit.
 */

import { canonicalArguments, parseArguments } from "../../base/schema/arguments.ts";
import { type Message, type Part, type ToolCallPart, textOf, toolCallsOf } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import { fromCarrier, toolInput } from "../dialects/index.ts";
import { ownId } from "./own-id.ts";

export type Comparison = {
  status: Restored["status"];
  differences: string[];
  /** What to go on with: the turn as it was sampled, or as it was sent where it was edited. */
  message: Message;
  /** Calls that came back under ids of the harness's own: its id, and the engine's. */
  renamed: [string, string][];
};

/** `callId` is the call that sampled `emitted`. */
export function compareTurn(callId: string, emitted: Message, received: Message, policy: SessionSpec["restore"]): Comparison {
  const sent = withCarriedThought(callId, emitted, received);
  const edited = (what: string): Comparison => ({ status: "edited", differences: [what], message: sent, renamed: [] });
  const differences: string[] = sent === received ? [] : ["reasoning_carried"];
  const emittedReasoning = reasoningOf(emitted);
  const sentReasoning = reasoningOf(sent);
  if (isPromoted(emittedReasoning, sentReasoning, emitted, sent)) return edited("reasoning_as_text");

  const sentCalls = toolCallsOf(sent);
  const fits = (one: Message): boolean => toolCallsOf(one).length === sentCalls.length;
  const view = fits(emitted) ? emitted : asText(emitted);
  if (!fits(view)) return edited(areFirstCalls(callId, emitted, sent) ? "tool_calls_cut" : "tool_calls");
  if (view !== emitted) differences.push("malformed_arguments_as_text");
  const pairs = pair(callId, emitted, view, sentCalls);
  if (pairs === null) return edited("tool_calls");
  for (const { emitted: emittedCall, sent: sentCall } of pairs) {
    if (emittedCall.name !== sentCall.name) return edited("tool_name");
    const same = sameArguments(emittedCall, sentCall);
    if (same === "edited") return edited("arguments");
    if (same === "reserialised") differences.push("arguments");
  }
  const renamed = pairs
    .filter(({ sent: { id } }) => ownId(id) === null)
    .map(({ emitted: from, sent: to }): [string, string] => [to.id, from.id]);
  if (renamed.length > 0) differences.push("ids");
  if (pairs.some(({ index }, at) => at > 0 && index < (pairs[at - 1]?.index ?? 0))) differences.push("order");

  const [emittedText, sentText] = [textOf(view), textOf(sent)];
  if (emittedText.trim() !== sentText.trim()) return edited(isHead(sentText, emittedText) ? "text_cut" : "text");
  if (emittedText !== sentText) differences.push("white_space");

  // A thought of white space alone is white space.
  const dropped = emittedReasoning.trim() !== "" && sentReasoning === "";
  if (sentReasoning !== "" && emittedReasoning.trim() !== sentReasoning.trim()) return edited("reasoning");
  if (emittedReasoning !== sentReasoning && !dropped) differences.push("reasoning_white_space");
  // A harness that dropped reasoning meant it: the context of a deployment without us would not have it either.
  if (dropped) differences.push(policy === "full" ? "reasoning_restored" : "reasoning_dropped");

  const parts: Part[] = dropped && policy !== "full" ? emitted.parts.filter((part) => part.type !== "reasoning") : emitted.parts;
  // The very object where nothing is left out of it: its identity and its place in the record are known already.
  const message: Message = parts === emitted.parts ? emitted : { role: "assistant", parts };
  return { status: differences.length === 0 ? "identical" : "restored", differences, message, renamed };
}

/**
 * The turn with its reasoning where only a carrier brought it back: the vendor reads the reasoning from its own carrier, so
 * that harness dropped nothing. A part of the same reasoning may stand beside the carrier. Beside other text, or from
 * another turn, the carrier is ignored.
 */
function withCarriedThought(callId: string, emitted: Message, received: Message): Message {
  const thought = emitted.parts.filter(({ type }) => type === "reasoning");
  const words = reasoningOf(emitted);
  const isCarried = received.parts.some(
    (part) => part.type === "reasoning" && part.text === "" && fromCarrier(part.carrier ?? "") === callId,
  );
  if (!isCarried || words.trim() === "" || reasoningOf(received) === words) return received;
  if (!areAmong(words, received)) return received;
  const place = received.parts.findIndex(({ type }) => type === "reasoning");
  return {
    ...received,
    parts: received.parts.flatMap((part, index) => (index === place ? thought : part.type === "reasoning" ? [] : [part])),
  };
}

/** Do the words of its thought stand in these, in their order? Each is looked for behind the one before it, so a million are found in one pass. */
function areAmong(words: string, message: Message): boolean {
  let at = 0;
  for (const part of message.parts) {
    if (part.type !== "reasoning") continue;
    const text = part.text.trim();
    const found = words.indexOf(text, at);
    if (found === -1) return false;
    at = found + text.length;
  }
  return true;
}

/** A harness that works with the first part of a turn stops reading there, or cuts the rest off. */
function isHead(sent: string, emitted: string): boolean {
  return sent.trim() !== "" && emitted.trim().startsWith(sent.trim());
}

/** Its first calls alone, behind all of its text. */
function areFirstCalls(callId: string, emitted: Message, sent: Message): boolean {
  const [emittedCalls, sentCalls] = [toolCallsOf(emitted), toolCallsOf(sent)];
  if (sentCalls.length === 0 || sentCalls.length >= emittedCalls.length || textOf(emitted).trim() !== textOf(sent).trim()) return false;
  return sentCalls.every((sentCall, index) => {
    const own = ownId(sentCall.id);
    const emittedCall = emittedCalls[index] as ToolCallPart;
    const isInPlace = own === null || (own.call_id === callId && own.index === index);
    return isInPlace && emittedCall.name === sentCall.name && sameArguments(emittedCall, sentCall) !== "edited";
  });
}

/** The turn on a wire that requires an object for arguments: invalid arguments are text there. */
export function asText(emitted: Message): Message {
  const isMalformed = (part: Part): part is ToolCallPart => part.type === "tool_call" && toolInput(part.arguments) === null;
  if (!emitted.parts.some(isMalformed)) return emitted;
  return { ...emitted, parts: emitted.parts.map((part) => (isMalformed(part) ? { type: "text", text: part.arguments } : part)) };
}

/** Reasoning that came back as ordinary text, alone or in front of the text. */
function isPromoted(emittedReasoning: string, sentReasoning: string, emitted: Message, sent: Message): boolean {
  const reasoning = emittedReasoning.trim();
  return reasoning !== "" && sentReasoning === "" && textOf(sent).includes(reasoning) && !textOf(emitted).includes(reasoning);
}

type CallPair = { index: number; emitted: ToolCallPart; sent: ToolCallPart };

/** Pairs each call that came back with the emitted one: by our id where it was kept, else by position. Null where they do not fit. */
function pair(callId: string, emitted: Message, view: Message, sentCalls: ToolCallPart[]): CallPair[] | null {
  const all = toolCallsOf(emitted);
  const shown = toolCallsOf(view);
  const taken = new Set<number>();
  const pairs: CallPair[] = [];
  for (const [place, sent] of sentCalls.entries()) {
    const own = ownId(sent.id);
    if (own !== null && own.call_id !== callId) return null;
    const index = own?.index ?? all.indexOf(shown[place] as ToolCallPart);
    const emittedCall = all[index];
    if (!emittedCall || !shown.includes(emittedCall) || taken.has(index)) return null;
    taken.add(index);
    pairs.push({ index, emitted: emittedCall, sent });
  }
  return pairs;
}

function sameArguments(emitted: ToolCallPart, sent: ToolCallPart): "same" | "reserialised" | "edited" {
  if (sent.kind === "custom" && emitted.kind !== "custom") return customInput(emitted.arguments) === sent.arguments ? "same" : "edited";
  if (emitted.arguments === sent.arguments) return "same";
  const meant = canonicalArguments(emitted.arguments);
  if (meant !== null && meant === canonicalArguments(sent.arguments)) return "reserialised";
  return isUnparsed(parseArguments(sent.arguments), emitted.arguments) ? "reserialised" : "edited";
}

/** Claude Code wraps what it could not parse, and may cut the text but not its length. */
function isUnparsed(sentValue: unknown, emittedArguments: string): boolean {
  const wrapped = isObject(sentValue) && Object.keys(sentValue).length === 1 ? sentValue.__unparsedToolInput : null;
  if (!isObject(wrapped) || typeof wrapped.raw !== "string" || wrapped.raw === "") return false;
  return wrapped.raw === emittedArguments || (wrapped.len === emittedArguments.length && emittedArguments.startsWith(wrapped.raw));
}

/** A freeform tool is shown to the model as a function with one string, `input`. */
function customInput(rawArguments: string): string | null {
  const value = parseArguments(rawArguments);
  const input = isObject(value) ? value.input : null;
  return typeof input === "string" ? input : rawArguments;
}

export function reasoningOf(message: Message): string {
  return message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
