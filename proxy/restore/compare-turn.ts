/**
 * A turn that we said beside what came back of it. What a serialiser does (order of keys, spacing, ids, order of
 * parallel calls, outer white space, another place for what is no JSON) can be undone; anything else is an edit.
 */
import { fromCarrier } from "../../dialects/carrier.ts";
import { toolInput } from "../../dialects/tool-input.ts";
import { canonicalArguments, parseArguments } from "../../schema/arguments.ts";
import { type Message, type Part, type ToolCallPart, textOf, toolCallsOf } from "../../schema/message.ts";
import type { Restored, SessionSpec } from "../../schema/session-log.ts";
import { ownId } from "./own-id.ts";

export type Comparison = {
  status: Restored["status"];
  differences: string[];
  /** What to go on with: the turn as it was sampled, or as it was sent where it was edited. */
  message: Message;
  /** Calls that came back under ids of the harness's own: its id, and the engine's. */
  renamed: [string, string][];
};

/** `callId` is the call that sampled `said`. */
export function compareTurn(callId: string, said: Message, received: Message, policy: SessionSpec["restore"]): Comparison {
  const sent = withCarriedThought(callId, said, received);
  const edited = (what: string): Comparison => ({ status: "edited", differences: [what], message: sent, renamed: [] });
  const differences: string[] = sent === received ? [] : ["reasoning_carried"];
  const saidReasoning = reasoningOf(said);
  const sentReasoning = reasoningOf(sent);
  if (isPromoted(saidReasoning, sentReasoning, said, sent)) return edited("reasoning_as_text");

  const sentCalls = toolCallsOf(sent);
  const fits = (one: Message): boolean => toolCallsOf(one).length === sentCalls.length;
  const view = fits(said) ? said : asText(said);
  if (!fits(view)) return edited(areFirstCalls(callId, said, sent) ? "tool_calls_cut" : "tool_calls");
  if (view !== said) differences.push("malformed_arguments_as_text");
  const pairs = pair(callId, said, view, sentCalls);
  if (pairs === null) return edited("tool_calls");
  for (const { said: saidCall, sent: sentCall } of pairs) {
    if (saidCall.name !== sentCall.name) return edited("tool_name");
    const same = sameArguments(saidCall, sentCall);
    if (same === "edited") return edited("arguments");
    if (same === "reserialised") differences.push("arguments");
  }
  const renamed = pairs
    .filter(({ sent: { id } }) => ownId(id) === null)
    .map(({ said: from, sent: to }): [string, string] => [to.id, from.id]);
  if (renamed.length > 0) differences.push("ids");
  if (pairs.some(({ index }, at) => at > 0 && index < (pairs[at - 1]?.index ?? 0))) differences.push("order");

  const [saidText, sentText] = [textOf(view), textOf(sent)];
  if (saidText.trim() !== sentText.trim()) return edited(isHead(sentText, saidText) ? "text_cut" : "text");
  if (saidText !== sentText) differences.push("white_space");

  // A thought of white space alone is white space.
  const dropped = saidReasoning.trim() !== "" && sentReasoning === "";
  if (sentReasoning !== "" && saidReasoning.trim() !== sentReasoning.trim()) return edited("reasoning");
  if (saidReasoning !== sentReasoning && !dropped) differences.push("reasoning_white_space");
  // A harness that dropped reasoning meant it: the context of a deployment without us would not have it either.
  if (dropped) differences.push(policy === "full" ? "reasoning_restored" : "reasoning_dropped");

  const parts: Part[] = dropped && policy !== "full" ? said.parts.filter((part) => part.type !== "reasoning") : said.parts;
  // The very object where nothing is left out of it: its identity and its place in the record are known already.
  const message: Message = parts === said.parts ? said : { role: "assistant", parts };
  return { status: differences.length === 0 ? "identical" : "restored", differences, message, renamed };
}

/**
 * The turn with its thought where a carrier alone came back for it: a vendor reads the thought out of its own carrier, so
 * a harness that sends it has dropped nothing. Of the thought's own words some may stand beside it; beside other words the
 * carrier counts for nothing, and neither does one of another turn.
 */
function withCarriedThought(callId: string, said: Message, received: Message): Message {
  const thought = said.parts.filter(({ type }) => type === "reasoning");
  const words = reasoningOf(said);
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
function isHead(sent: string, said: string): boolean {
  return sent.trim() !== "" && said.trim().startsWith(sent.trim());
}

/** Its first calls alone, behind all of its text. */
function areFirstCalls(callId: string, said: Message, sent: Message): boolean {
  const [saidCalls, sentCalls] = [toolCallsOf(said), toolCallsOf(sent)];
  if (sentCalls.length === 0 || sentCalls.length >= saidCalls.length || textOf(said).trim() !== textOf(sent).trim()) return false;
  return sentCalls.every((sentCall, index) => {
    const own = ownId(sentCall.id);
    const saidCall = saidCalls[index] as ToolCallPart;
    const isInPlace = own === null || (own.call_id === callId && own.index === index);
    return isInPlace && saidCall.name === sentCall.name && sameArguments(saidCall, sentCall) !== "edited";
  });
}

/** The turn as a wire says it that wants arguments to be an object: what is none went out as text. */
export function asText(said: Message): Message {
  const isMalformed = (part: Part): part is ToolCallPart => part.type === "tool_call" && toolInput(part.arguments) === null;
  if (!said.parts.some(isMalformed)) return said;
  return { ...said, parts: said.parts.map((part) => (isMalformed(part) ? { type: "text", text: part.arguments } : part)) };
}

/** Reasoning that came back as ordinary text, alone or in front of the text. */
function isPromoted(saidReasoning: string, sentReasoning: string, said: Message, sent: Message): boolean {
  const reasoning = saidReasoning.trim();
  return reasoning !== "" && sentReasoning === "" && textOf(sent).includes(reasoning) && !textOf(said).includes(reasoning);
}

type Pair = { index: number; said: ToolCallPart; sent: ToolCallPart };

/** Each call that came back with the one that was said: by our id, where it kept one, else by its place. Null where they do not fit. */
function pair(callId: string, said: Message, view: Message, sentCalls: ToolCallPart[]): Pair[] | null {
  const all = toolCallsOf(said);
  const shown = toolCallsOf(view);
  const taken = new Set<number>();
  const pairs: Pair[] = [];
  for (const [place, sent] of sentCalls.entries()) {
    const own = ownId(sent.id);
    if (own !== null && own.call_id !== callId) return null;
    const index = own?.index ?? all.indexOf(shown[place] as ToolCallPart);
    const saidCall = all[index];
    if (!saidCall || !shown.includes(saidCall) || taken.has(index)) return null;
    taken.add(index);
    pairs.push({ index, said: saidCall, sent });
  }
  return pairs;
}

function sameArguments(said: ToolCallPart, sent: ToolCallPart): "same" | "reserialised" | "edited" {
  if (sent.kind === "custom" && said.kind !== "custom") return customInput(said.arguments) === sent.arguments ? "same" : "edited";
  if (said.arguments === sent.arguments) return "same";
  const meant = canonicalArguments(said.arguments);
  if (meant !== null && meant === canonicalArguments(sent.arguments)) return "reserialised";
  return isUnparsed(parseArguments(sent.arguments), said.arguments) ? "reserialised" : "edited";
}

/** Claude Code wraps what it could not parse, and may cut the text but not its length. */
function isUnparsed(sentValue: unknown, saidArguments: string): boolean {
  const wrapped = isObject(sentValue) && Object.keys(sentValue).length === 1 ? sentValue.__unparsedToolInput : null;
  if (!isObject(wrapped) || typeof wrapped.raw !== "string" || wrapped.raw === "") return false;
  return wrapped.raw === saidArguments || (wrapped.len === saidArguments.length && saidArguments.startsWith(wrapped.raw));
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
