/** A session's finished turns, found by their content and by their position in a conversation. */
import { canonicalArguments } from "../../base/schema/arguments.ts";
import { hashOf } from "../../base/schema/ids.ts";
import { type Message, toolCallsOf } from "../../base/schema/message.ts";
import { asText, reasoningOf } from "../restore/compare-turn.ts";
import { type Call, isSameMessage, normalText } from "./call.ts";

/** Turns of the same content. Each message with that content reads this list, so it is short; older turns are found by position. */
type SameWords = { count: number; latest: Call[]; byPosition: Map<number, Call[]> };

const latestKept = 64;

export class EmittedTurns {
  readonly #byContent = new Map<string, SameWords>();
  readonly #byPosition = new Map<number, Call[]>();

  /** Adds the turn under each form that a dialect may give its content. */
  add(call: Call): void {
    const message = call.turn?.message;
    if (!message) return;
    for (const key of new Set([message, asText(message)].map(contentKey))) this.#remember(key, call);
    append(this.#byPosition, call.messages.length, call);
  }

  /**
   * The turn with this content, and with the same reasoning where the message has one. `isHere`: that turn answered the same
   * conversation. Otherwise it is the turn at this position of another conversation, or the latest one; `isSure` is then
   * true when no other turn has this content. A turn without text is found by its position or its reasoning only.
   */
  find(message: Message, before: readonly Message[]): { call: Call; isHere: boolean; isSure: boolean } | undefined {
    const same = this.#byContent.get(contentKey(message));
    if (!same) return undefined;
    const thought = reasoningOf(message).trim();
    const isWordless = normalText(message) === "" && toolCallsOf(message).length === 0;
    const isMeant = ({ turn }: Call): boolean => !isWordless || thought === "" || (!!turn && reasoningOf(turn.message).trim() === thought);
    const thoughtSo = (calls: readonly Call[]): Call | undefined =>
      calls.findLast(({ turn }) => turn && reasoningOf(turn.message) === reasoningOf(message)) ?? calls.at(-1);
    const alike = (same.byPosition.get(before.length) ?? []).filter(isMeant);
    const here = thoughtSo(alike.filter((call) => isAnswerTo(call, before)));
    if (here) return { call: here, isHere: true, isSure: true };
    if (isWordless && thought === "") return undefined;
    const latest = same.latest.filter(isMeant);
    const elsewhere = thoughtSo(alike) ?? thoughtSo(latest);
    return elsewhere && { call: elsewhere, isHere: false, isSure: latest.length === 1 && same.count <= latestKept };
  }

  #remember(key: string, call: Call): void {
    const same = this.#byContent.get(key) ?? { count: 0, latest: [], byPosition: new Map() };
    this.#byContent.set(key, same);
    same.count++;
    same.latest = [...same.latest.slice(1 - latestKept), call];
    append(same.byPosition, call.messages.length, call);
  }

  /** The turns that were answers to conversations of this length, oldest first. */
  at(position: number): readonly Call[] {
    return this.#byPosition.get(position) ?? [];
  }

  /** Other turns of the same content that answered the same conversation. */
  twinsOf(call: Call): Call[] {
    const { turn } = call;
    return this.at(call.messages.length).filter(
      (other) =>
        other !== call && turn && other.turn && isSameMessage(other.turn.message, turn.message) && isAnswerTo(other, call.messages),
    );
  }

  clear(): void {
    this.#byContent.clear();
    this.#byPosition.clear();
  }
}

export function isAnswerTo({ messages }: Call, before: readonly Message[]): boolean {
  return messages.length === before.length && messages.every((message, index) => isSameMessage(message, before[index]));
}

/** Text and calls without ids, order of keys and outer white space. */
function contentKey(message: Message): string {
  const known = keys.get(message);
  if (known !== undefined) return known;
  const text = normalText(message);
  const calls = toolCallsOf(message).map((call) => [call.name, canonicalArguments(call.arguments) ?? call.arguments]);
  const key = hashOf([text, calls]);
  keys.set(message, key);
  return key;
}

const keys = new WeakMap<Message, string>();

function append<Key>(lists: Map<Key, Call[]>, key: Key, call: Call): void {
  const list = lists.get(key);
  if (list) list.push(call);
  else lists.set(key, [call]);
}
