/** Where each answer stands in the order of a record: the place at which it is given again. */
import { type Message, type Part, toolCallsOf } from "../../base/schema/message.ts";
import { isWork } from "./is-work.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

/** `at`: a place among the lines of the log, or between two of them. */
export type PlacedAnswer = { id: string; root: string; begunAt: number; at: number };

/**
 * Answers of agents' turns that their clients got: only these need be asked for again. They stand where they ended, but for the ends
 * of sub-agents and the answers before the requests that tell of such an end.
 */
export function placeAnswers({ calls, roots }: SessionRecording, answered: ReadonlySet<string>): PlacedAnswer[] {
  const work = calls.filter(({ call }) => isWork(call.begun.request_class));
  const next = new Map(work.toReversed().map((one) => [one.call.begun.parent_call_id ?? "", one]));
  const rootOf = ({ call }: RecordedCall): string => roots.get(call.id) ?? call.id;
  const isGiven = ({ call, endedAt }: RecordedCall): boolean => answered.has(call.id) && endedAt !== null && call.delivery === "complete";
  const places = new Map(work.filter(isGiven).map((one) => [one.call.id, toPlace(one, rootOf(one))]));
  const agents = new Set(places.values().map(({ root }) => root));
  if (agents.size < 2) return [...places.values()];
  const ends = work.filter((one) => isGiven(one) && !next.has(one.call.id));
  const told = new EndsTold(work, rootOf);
  for (const end of ends.toSorted((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0))) {
    const own = places.get(end.call.id);
    const teller = told.of(end);
    const before = places.get(teller?.call.begun.parent_call_id ?? "");
    if (own === undefined || teller === null || before === undefined) continue;
    // Behind the request before the one that tells of it: it would be told of too early.
    own.at = Math.max(own.at, before.begunAt + 0.25);
    const until = Math.min(next.get(before.id)?.begunAt ?? 0, causedBy(before, end, work));
    if (own.at < until) before.at = Math.max(before.at, own.at + 0.25);
  }
  return [...places.values()];
}

function toPlace({ call, begunAt, endedAt }: RecordedCall, root: string): PlacedAnswer {
  return { id: call.id, root, begunAt, at: endedAt ?? begunAt };
}

/** Where the first conversation begins that this answer may have begun, or 0 if it may have brought about this end itself. */
function causedBy(answer: PlacedAnswer, end: RecordedCall, work: readonly RecordedCall[]): number {
  const message = work.find(({ call }) => call.id === answer.id)?.call.turn?.message;
  if (message === undefined || toolCallsOf(message).length === 0) return Infinity;
  if (answer.at < end.begunAt) return 0;
  const began = work.find(({ call, begunAt }) => begunAt > answer.at && (call.begun.parent_call_id ?? null) === null);
  return began?.begunAt ?? Infinity;
}

/**
 * How many later requests may be the one that tells of an end, and how much of them and of the last words is looked at. Shorter words
 * ("Done.", "}") stand in any request. `looked`: characters for all ends of a record, so that the search takes seconds at worst.
 */
const bounds = { requests: 16, characters: 1_000_000, words: { from: 20, to: 200 }, looked: 20_000_000 };

/** Finds the request that tells of a sub-agent's end: the first one of another conversation that holds its last words. */
class EndsTold {
  readonly #byId: ReadonlyMap<string, RecordedCall>;
  readonly #work: readonly RecordedCall[];
  readonly #rootOf: (one: RecordedCall) => string;
  readonly #texts = new Map<string, string>();
  /** How many ends with these last words a request was already taken for. */
  readonly #taken = new Map<string, number>();
  #looked = 0;

  constructor(work: readonly RecordedCall[], rootOf: (one: RecordedCall) => string) {
    this.#work = work;
    this.#rootOf = rootOf;
    this.#byId = new Map(work.map((one) => [one.call.id, one]));
  }

  /** null: none does, its last words are too few to know them again, or too much was looked at already. */
  of(end: RecordedCall): RecordedCall | null {
    const words = lastWords(end);
    if (words.length < bounds.words.from) return null;
    const endedAt = end.endedAt ?? 0;
    let looked = 0;
    for (const one of this.#work) {
      const root = this.#rootOf(one);
      if (one.begunAt < endedAt || root === this.#rootOf(end)) continue;
      // The conversation that is told of it began it, so it is older.
      if ((this.#byId.get(root) ?? one).begunAt > endedAt) continue;
      if (++looked > bounds.requests) return null;
      const key = `${one.call.id} ${words}`;
      const taken = this.#taken.get(key) ?? 0;
      const text = this.#newText(one);
      this.#looked += text.length;
      if (this.#looked > bounds.looked) return null;
      if (!holdsMoreThan(text, words, taken)) continue;
      this.#taken.set(key, taken + 1);
      return one;
    }
    return null;
  }

  /** What stands in the request behind the turn that it goes on from. */
  #newText({ call }: RecordedCall): string {
    const known = this.#texts.get(call.id);
    if (known !== undefined) return known;
    const from = this.#byId.get(call.begun.parent_call_id ?? "")?.call.messages.length ?? 0;
    const text = call.messages.slice(from).map(textOfOthers).join("\n").slice(0, bounds.characters);
    this.#texts.set(call.id, text);
    return text;
  }
}

/** True if the words stand in it more often than so. Looks no further than that. */
function holdsMoreThan(text: string, words: string, times: number): boolean {
  let at = text.indexOf(words);
  for (let found = 0; at !== -1 && found < times; found++) at = text.indexOf(words, at + words.length);
  return at !== -1;
}

/** The beginning of its last line of text. */
function lastWords({ call }: RecordedCall): string {
  const text = (call.turn?.message.parts ?? []).map((part) => (part.type === "text" ? part.text : "")).join("");
  return (text.trim().split("\n").at(-1) ?? "").slice(0, bounds.words.to);
}

function textOfOthers({ role, parts }: Message): string {
  return role === "assistant" ? "" : parts.map(textOfPart).join("\n");
}

function textOfPart(part: Part): string {
  if (part.type === "tool_result") return part.content.map(textOfPart).join("\n");
  return part.type === "text" ? part.text : "";
}
