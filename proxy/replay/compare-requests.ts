/**
 * Holds a request of a replay against the recorded one. Tools really run, so durations, ids and dates differ in nearly every
 * replay; what must not differ is which calls were made and how many results came back.
 */
import { imageName } from "../../base/media/stored-picture.ts";
import { canonicalJson } from "../../base/schema/ids.ts";
import type { Message, NeutralRequest, Part, Tool } from "../../base/schema/message.ts";
import type { ReplayClass } from "../../base/schema/session-log.ts";
import { isSameMessage } from "../session/call.ts";

/** `apart`: characters between the first and the last difference of each message, added up. */
export type RequestComparison = { class: ReplayClass; difference: string | null; apart: number };

export type ComparedRequest = { messages: readonly Message[]; tools: readonly Tool[] };

/** From the smallest difference to the largest. */
const ranks: readonly ReplayClass[] = ["equal", "values", "words", "structure"];

export function rankOf(one: ReplayClass): number {
  return ranks.indexOf(one);
}

/** The largest difference, and the first one of that class in words. */
export function compareRequests(recorded: ComparedRequest, now: ComparedRequest): RequestComparison {
  let worst: RequestComparison = compareTools(recorded.tools, now.tools);
  const { length } = recorded.messages;
  if (length !== now.messages.length) return structure(`${length} messages were recorded and ${now.messages.length} came`);
  const messages = inRecordedOrder(recorded.messages, now.messages);
  if (messages !== now.messages)
    worst = both(worst, { class: "values", difference: "results of one turn came in another order", apart: 0 });
  for (const [index, message] of recorded.messages.entries()) {
    const other = messages[index] as Message;
    if (isSameMessage(message, other)) continue;
    worst = both(worst, compareMessages(message, other, index));
  }
  return worst;
}

/** What a request says of how it is to be sampled. */
export type RequestSettings = Pick<NeutralRequest, "tool_choice" | "sampling">;

/**
 * The larger one of this difference and that of the settings. These are never `structure`: they do not tell where a request belongs,
 * and the recorded answer or prompt is given in any case.
 */
export function withSettings(comparison: RequestComparison, recorded: RequestSettings, now: RequestSettings): RequestComparison {
  const [before, after] = [settingsOf(recorded), settingsOf(now)];
  const names = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return names.reduce((worst, name) => {
    const texts = [before.get(name) ?? "nothing", after.get(name) ?? "nothing"] as const;
    return both(worst, { ...compareTexts(...texts, `the setting ${shortened(name)}`), apart: 0 });
  }, comparison);
}

/** Name -> its value as text. */
function settingsOf({ tool_choice, sampling }: RequestSettings): Map<string, string> {
  const all = Object.entries({ ...sampling, tool_choice: tool_choice ?? undefined });
  return new Map(all.flatMap(([name, value]) => (value === undefined ? [] : [[name, canonicalJson(value)] as const])));
}

/** The larger of two differences, and how far both are apart together. */
function both(one: RequestComparison, other: RequestComparison): RequestComparison {
  const worst = rankOf(other.class) > rankOf(one.class) ? other : one;
  return { ...worst, apart: one.apart + other.apart };
}

/**
 * Puts the results of each turn in the recorded order, if they answer the same calls. Some harnesses send each result when its
 * call ends, and calls of one turn run side by side. Returns `now` itself if no result moves.
 */
function inRecordedOrder(recorded: readonly Message[], now: readonly Message[]): readonly Message[] {
  let moved: Message[] | null = null;
  for (let from = 0; from < now.length; from++) {
    if (answeredBy(now[from]) === null) continue;
    let to = from;
    const results = new Map<string, Message>();
    for (; to < now.length; to++) {
      const id = answeredBy(now[to]);
      if (id === null || results.has(id)) break;
      results.set(id, now[to] as Message);
    }
    const wanted = recorded.slice(from, to).map((message) => results.get(answeredBy(message) ?? ""));
    const isMoved = wanted.some((message, index) => message !== now[from + index]);
    if (isMoved && wanted.every((message) => message !== undefined)) {
      moved ??= [...now];
      moved.splice(from, to - from, ...wanted.flatMap((message) => message ?? []));
    }
    from = to - 1;
  }
  return moved ?? now;
}

/** Returns the id of the call that the message answers; null if it is no tool result. */
function answeredBy(message: Message | undefined): string | null {
  const [part, ...more] = message?.parts ?? [];
  return message?.role === "tool" && part?.type === "tool_result" && more.length === 0 ? part.call_id : null;
}

const equal: RequestComparison = { class: "equal", difference: null, apart: 0 };

function structure(difference: string): RequestComparison {
  return { class: "structure", difference, apart: 0 };
}

function compareTools(recorded: readonly Tool[], now: readonly Tool[]): RequestComparison {
  const names = (tools: readonly Tool[]): string => tools.map(({ name }) => name).join(", ");
  const [before, after] = [names(recorded), names(now)];
  if (before !== after) return structure(`the tools were ${shortened(before) || "none"} and are ${shortened(after) || "none"}`);
  return compareTexts(canonicalJson(recorded), canonicalJson(now), "the tools");
}

function compareMessages(recorded: Message, now: Message, index: number): RequestComparison {
  const where = `message ${index + 1}`;
  if (recorded.role !== now.role) return structure(`${where} was of ${recorded.role} and is of ${now.role}`);
  if (recorded.parts.length !== now.parts.length)
    return structure(`${where} had ${recorded.parts.length} parts and has ${now.parts.length}`);
  let worst = compareTexts(recorded.name ?? "", now.name ?? "", `the speaker of ${where}`);
  for (const [at, part] of recorded.parts.entries()) {
    worst = both(worst, compareParts(part, now.parts[at] as Part, `${where} (${recorded.role})`));
  }
  return worst;
}

function compareParts(recorded: Part, now: Part, where: string): RequestComparison {
  if (recorded.type !== now.type) return structure(`${where} had a part of type ${recorded.type} and has one of type ${now.type}`);
  if (recorded.type === "tool_call" && now.type === "tool_call") {
    const same = recorded.name === now.name && recorded.arguments === now.arguments;
    return same ? equal : structure(`${where} had the call ${shown(callText(recorded))} and has ${shown(callText(now))}`);
  }
  if (recorded.type === "tool_result" && now.type === "tool_result") {
    if (recorded.call_id !== now.call_id)
      return structure(`${where} answered call ${shortened(recorded.call_id)} and answers ${shortened(now.call_id)}`);
    if (recorded.content.length !== now.content.length)
      return structure(`${where} had a result of ${recorded.content.length} parts and has one of ${now.content.length}`);
  }
  return compareTexts(textOf(recorded), textOf(now), where);
}

function callText({ name, arguments: given }: Extract<Part, { type: "tool_call" }>): string {
  return `${name} ${given}`;
}

/** Images are told apart by their address, or by the hash of their bytes. */
function textOf(part: Part): string {
  if (part.type === "tool_result") return part.content.map(textOf).join("\n") + (part.is_error ? "\n(an error)" : "");
  return part.type === "image" ? imageName(part) : part.type === "tool_call" ? callText(part) : part.text;
}

function compareTexts(recorded: string, now: string, where: string): RequestComparison {
  if (recorded === now) return equal;
  const lines = firstDifference(recorded, now);
  const difference = `${where} had ${shown(lines.recorded)} and has ${shown(lines.now)}`;
  const name = withoutValues(recorded) === withoutValues(now) ? "values" : "words";
  return { class: name, difference, apart: charactersApart(recorded, now) };
}

/** Counts the longer text without the beginning and the end that both share. */
function charactersApart(one: string, other: string): number {
  const shorter = Math.min(one.length, other.length);
  let from = 0;
  while (from < shorter && one[from] === other[from]) from++;
  let behind = 0;
  while (behind < shorter - from && one.at(-1 - behind) === other.at(-1 - behind)) behind++;
  return Math.max(one.length, other.length) - from - behind;
}

/** Longer texts are compared as they are: to look for values in them takes longer than it tells. */
const longestNormalised = 4_000_000;

/** In this order. Each takes time in proportion to the text: a command may print what it likes. */
const values: readonly [RegExp, string][] = [
  [/(?:\/private)?\/(?:tmp|var\/tmp|var\/folders)\/[^\s"'`<>)\]},:;]*/g, "<path>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, "<id>"],
  [/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]{0,6}day)?\b/g, "<day>"],
  [/\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\b/g, "<month>"],
  // An id has letters and digits and is no word: eight of them at the least, or six that are hexadecimal. "868047ms" is none.
  [/(?<!\.)\b(?!\d+(?:ns|us|ms|s|m|h)\b)(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])[0-9a-z]{8,}\b/gi, "<id>"],
  // Also after "_" ("ses_4c1d9e02"), if a letter follows a digit. "test_addition1" is a name.
  [/(?<=_)(?=[0-9a-z]*\d[a-z])[0-9a-z]{8,}\b/gi, "<id>"],
  [/(?<!\.)\b(?=[0-9]*[a-f])[0-9a-f]{6,}\b/g, "<id>"],
  [/\d+/g, "#"],
  [/#(?:[.,:]#)*/g, "#"],
  [/# ?(?:ns|µs|us|ms|secs?|seconds?|mins?|minutes?|hours?|s|m|h)\b/g, "<time>"],
  // A hexadecimal id may be of digits alone.
  [/<id>/g, "#"],
  // A number of another length moves what stands behind it in a table.
  [/ {2,}/g, " "],
];

/** The text without what differs from one run to the next: digits, durations, ids, dates, temporary paths. */
export function withoutValues(text: string): string {
  if (text.length > longestNormalised) return text;
  return values.reduce((rest, [what, stand]) => rest.replace(what, stand), text);
}

/** The first lines that are not the same, from a little before they part. */
function firstDifference(recorded: string, now: string): { recorded: string; now: string } {
  const [before, after] = [recorded.split("\n"), now.split("\n")];
  const at = before.findIndex((line, index) => line !== after[index]);
  const line = at === -1 ? before.length : at;
  return fromDifference(before[line] ?? "", after[line] ?? "");
}

/** What is shown in front of a difference. A list of tools is one long line. */
const shownBefore = 60;

function fromDifference(recorded: string, now: string): { recorded: string; now: string } {
  let same = 0;
  while (same < recorded.length && recorded[same] === now[same]) same++;
  const from = same - shownBefore;
  const cut = (text: string): string => (from > 0 ? `…${text.slice(from)}` : text);
  return { recorded: cut(recorded), now: cut(now) };
}

/** What a person is shown of either side. */
const shownCharacters = 200;

function shown(text: string): string {
  return JSON.stringify(shortened(text));
}

/** Cuts a name or an id for display. Harnesses choose them, so they may be long. */
export function shortened(text: string): string {
  return text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text;
}
