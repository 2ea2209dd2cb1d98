/**
 * Which thoughts of earlier turns a template prints: many leave them out once the user has spoken again. Asked with a
 * conversation of the same build in which every turn's thought is a mark of its own.
 */
import { type Message, toolCallsOf } from "../../base/schema/message.ts";
import type { Renderer } from "./anchor.ts";
import { dummyTools, marks } from "./shape.ts";

/** The answer about one build, remembered after the first time. */
export type Remember = (build: string, find: () => Promise<number[]>) => Promise<number[]>;

/** Indices of the messages whose reasoning the template prints, with the generation prompt at the end. */
export async function keptReasoning(
  renderer: Renderer,
  messages: readonly Message[],
  hasTools: boolean,
  remember: Remember,
): Promise<Set<number>> {
  const { words, standsFor } = build(messages);
  const printed = await remember(words.join(" "), async () => {
    const { text } = await renderer.render(words.map(dummy), dummyTools({ hasTools, calls: ["probe"] }), true);
    return words.flatMap((_, place) => (text.includes(markAt(place)) ? [place] : []));
  });
  return new Set([...standsFor].filter(([, place]) => printed.includes(place)).map(([index]) => index));
}

export function hasReasoning(message: Message): boolean {
  return message.parts.some((part) => part.type === "reasoning" && part.text.trim() !== "");
}

/** Reasoning, or a thought that stands in the text: where no parser cuts it out of a turn, many templates still do. */
export function hasThought(message: Message): boolean {
  return hasReasoning(message) || hasTextThought(message);
}

function hasTextThought(message: Message): boolean {
  return message.parts.some((part) => part.type === "text" && part.text.includes(endOfThought));
}

/** What templates look for. The beginning is often part of the generation prompt, and not of the turn. */
const endOfThought = "</think>";

/** A role; behind an assistant's what its turn has: `r` reasoning, `t` a thought in the text, `c` calls. */
type Word = Message["role"] | `assistant:${string}`;

/**
 * The probe for a loop of equal turns holds this many of them and the last one: the second turn stands for all later ones,
 * and the probe stays the same for longer loops.
 */
const shownOfALoop = 2;

/** The messages in words, and which word stands for the thought of which message. */
function build(messages: readonly Message[]): { words: Word[]; standsFor: Map<number, number> } {
  const words: Word[] = [];
  const standsFor = new Map<number, number>();
  for (let index = 0; index < messages.length; ) {
    const [unit, ...rest] = loopAt(messages, index);
    const units = [unit as Unit, ...rest];
    for (const [round, { start, roles }] of units.entries()) {
      const isShown = round < shownOfALoop || round === units.length - 1;
      const place = isShown ? words.length : words.length - roles.length;
      if (isShown) words.push(...roles);
      if (hasThought(messages[start] as Message)) standsFor.set(start, place);
    }
    index = units.at(-1)?.end as number;
  }
  return { words, standsFor };
}

/** A turn with the results of its calls, or one other message. */
type Unit = { start: number; end: number; roles: Word[] };

/** The unit here, and those that follow and say the same: a tool loop. Other messages repeat too, and each of them counts. */
function loopAt(messages: readonly Message[], index: number): Unit[] {
  const units = [unitAt(messages, index)];
  for (let last = units[0] as Unit; last.roles.length > 1 && last.end < messages.length; ) {
    const next = unitAt(messages, last.end);
    if (next.roles.join() !== last.roles.join()) break;
    units.push(next);
    last = next;
  }
  return units;
}

function unitAt(messages: readonly Message[], start: number): Unit {
  const message = messages[start] as Message;
  if (message.role !== "assistant") return { start, end: start + 1, roles: [message.role] };
  let end = start + 1;
  while (messages[end]?.role === "tool") end++;
  const thought = hasReasoning(message) ? "r" : hasTextThought(message) ? "t" : "";
  const letters = `${thought}${toolCallsOf(message).length > 0 ? "c" : ""}`;
  return { start, end, roles: [letters ? `assistant:${letters}` : "assistant", ...(end > start + 1 ? ["tool" as const] : [])] };
}

/** Letters alone: digits could stand beside others that a template prints. */
function markAt(place: number): string {
  return `${marks.reasoning}${Array.from(String(place), (digit) => "abcdefghij"[Number(digit)]).join("")}end`;
}

const probeId = "call00000";

function dummy(word: Word, place: number): Message {
  const [role, has = ""] = word.split(":") as [Message["role"], string?];
  if (role === "tool")
    return { role, parts: [{ type: "tool_result", call_id: probeId, content: [{ type: "text", text: "b" }], is_error: false }] };
  if (role !== "assistant") return { role, parts: [{ type: "text", text: "b" }] };
  return {
    role,
    parts: [
      ...(has.includes("r") ? [{ type: "reasoning" as const, text: markAt(place) }] : []),
      ...(has.includes("t") ? [{ type: "text" as const, text: `<think>\n${markAt(place)}\n${endOfThought}\n\na` }] : []),
      ...(has.includes("c") || has.includes("t") ? [] : [{ type: "text" as const, text: "a" }]),
      ...(has.includes("c")
        ? [{ type: "tool_call" as const, id: probeId, name: "probe", arguments: '{"key": "a"}', kind: "function" as const }]
        : []),
    ],
  };
}
