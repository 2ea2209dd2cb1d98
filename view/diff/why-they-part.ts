/** The first difference between two calls with different tokens, as text where there is any. */
import { imageName } from "../../base/media/stored-picture.ts";
import { canonicalJson } from "../../base/schema/ids.ts";
import { type Message, type Part, toolCallsOf } from "../../base/schema/message.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";

export type Parting = { why: string; a: string | null; b: string | null };

/** Characters shown before the first one that differs, and in all. */
const window = { before: 30, length: 120 };

export function whyTheyPart(a: CallRecord, b: CallRecord, where: "prompt" | "sample", left: Trajectory, right: Trajectory): Parting {
  const [own, other] = where === "prompt" ? [a.input, b.input] : [[a.output], [b.output]];
  const messagesA = own.map((id) => (id === null ? undefined : left.messages[id]));
  const messagesB = other.map((id) => (id === null ? undefined : right.messages[id]));
  const length = Math.max(messagesA.length, messagesB.length);
  for (let at = 0; at < length; at++) {
    const [inA, inB] = [messagesA[at], messagesB[at]];
    if (inA !== undefined && inB !== undefined && withoutIds(inA) === withoutIds(inB)) continue;
    if (inA === undefined && inB === undefined) continue;
    const what = where === "sample" ? sayings(inA, inB) : `message ${at + 1} differs (${roles(inA, inB)})`;
    return { why: what, ...sides(inA, inB) };
  }
  const settings = differentSettings(a, b, left, right);
  const why = where === "prompt" ? "the messages are the same, and were rendered to other tokens" : "the same words in other tokens";
  return { why: settings === "" ? why : `${why}; different: ${settings}`, a: null, b: null };
}

/** Names what differs in two answers. Names of tools are the model's words, and are left to the quotes. */
function sayings(a: Message | undefined, b: Message | undefined): string {
  const [callsA, callsB] = [a === undefined ? [] : toolCallsOf(a), b === undefined ? [] : toolCallsOf(b)];
  if (a === undefined || b === undefined || (callsA.length === 0 && callsB.length === 0)) return "they say different things";
  const names = (calls: typeof callsA) => canonicalJson(calls.map(({ name }) => name));
  if (names(callsA) !== names(callsB)) return "they call different tools";
  const asked = (calls: typeof callsA) => canonicalJson(calls.map((call) => call.arguments));
  const said = (message: Message) => canonicalJson(message.parts.filter(({ type }) => type !== "tool_call"));
  const what = callsA.length === 1 ? "the same tool" : "the same tools";
  if (asked(callsA) === asked(callsB)) return `they say different things, and call ${what} with the same arguments`;
  return `${said(a) === said(b) ? "they call" : "they say different things, and call"} ${what} with other arguments`;
}

/** Returns the beginning of what a call said; null: nothing is on record. */
export function saidIn({ output }: CallRecord, { messages }: Trajectory): string | null {
  const message = output === null ? undefined : messages[output];
  return message === undefined ? null : cutAt(wordsOf(message), 0);
}

/** What a message says, for comparing: tool-call ids are other ones in every session. */
export function withoutIds(message: Message): string {
  const parts = message.parts.map((part) => {
    if (part.type === "tool_call") return { ...part, id: "" };
    return part.type === "tool_result" ? { ...part, call_id: "" } : part;
  });
  return canonicalJson({ ...message, parts });
}

function roles(a: Message | undefined, b: Message | undefined): string {
  if (a === undefined || b === undefined) return `${(a ?? b)?.role}, only in ${a === undefined ? "B" : "A"}`;
  return a.role === b.role ? a.role : `${a.role}, ${b.role}`;
}

function sides(a: Message | undefined, b: Message | undefined): Pick<Parting, "a" | "b"> {
  const [textA, textB] = [a && wordsOf(a), b && wordsOf(b)];
  let at = 0;
  while (textA !== undefined && textB !== undefined && at < textA.length && textA[at] === textB[at]) at++;
  const from = wordBefore(textA ?? textB ?? "", at);
  const cut = (text: string | undefined) => (text === undefined ? null : cutAt(text, from));
  return { a: cut(textA), b: cut(textB) };
}

/** Returns where the first word begins that is near enough before the difference; without one, the word of the difference. */
function wordBefore(text: string, at: number): number {
  const first = Math.max(0, at - window.before);
  if (first === 0) return 0;
  const space = /\s\S/.exec(text.slice(first - 1, at));
  if (space !== null) return first + space.index;
  const before = text.slice(Math.max(0, first - window.length), first).search(/\S+$/);
  return before < 0 ? first : Math.max(0, first - window.length) + before;
}

function cutAt(text: string, from: number): string {
  const to = from + window.length;
  return `${from > 0 ? "…" : ""}${text.slice(from, to).toWellFormed()}${text.length > to ? "…" : ""}`;
}

function wordsOf(message: Message): string {
  return message.parts.map(wordsOfPart).join("\n");
}

function wordsOfPart(part: Part): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text;
    case "tool_call":
      return `${part.name} ${part.arguments}`;
    case "tool_result":
      return part.content.map((inner) => (inner.type === "text" ? inner.text : imageName(inner))).join("\n");
    case "image":
      return imageName(part);
  }
}

function differentSettings(a: CallRecord, b: CallRecord, left: Trajectory, right: Trajectory): string {
  const tools = (call: CallRecord, { tools: all }: Trajectory) =>
    canonicalJson(call.tools_hash === null ? [] : (all[call.tools_hash] ?? []));
  const facts: [string, unknown, unknown][] = [
    ["tools", tools(a, left), tools(b, right)],
    ["sampling", canonicalJson(a.sampling), canonicalJson(b.sampling)],
    ["model", a.engine_model, b.engine_model],
    ["template", a.fingerprints?.template, b.fingerprints?.template],
    ["tokenizer", a.fingerprints?.tokenizer, b.fingerprints?.tokenizer],
    ["token continuity", a.continuity?.mode, b.continuity?.mode],
    ["policy version", a.policy.start?.version, b.policy.start?.version],
  ];
  return facts
    .filter(([, one, other]) => one !== other)
    .map(([name]) => name)
    .join(", ");
}
