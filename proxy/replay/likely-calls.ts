/**
 * In which order a request is compared with the recorded calls at its place. A session may begin any number of conversations of any
 * length: with all of them compared, its replay would cost their number times their number.
 */
import type { Message } from "../../base/schema/message.ts";
import { messageKey } from "../session/call.ts";
import { withoutValues } from "./compare-requests.ts";
import type { RecordedCall } from "./recording.ts";

/** A request is compared with so many recorded calls at most: more than conversations that harnesses begin side by side. */
export const mostCompared = 32;

/** So many characters of the last message tell which calls are alike but for values. */
const lookedAt = 16_000;

export class LikelyCalls {
  readonly #calls: readonly RecordedCall[];
  #index: { same: Groups; alike: Groups } | null = null;

  constructor(calls: readonly RecordedCall[]) {
    this.#calls = calls;
  }

  /** Calls with these very messages, then those that are alike but for values, then all as recorded. A call may come again. */
  *inOrder(messages: readonly Message[]): Generator<RecordedCall> {
    if (this.#calls.length > mostCompared) {
      this.#index ??= { same: groupsOf(this.#calls, sameKey), alike: groupsOf(this.#calls, alikeKey) };
      yield* this.#index.same.get(sameKey(messages)) ?? [];
      yield* this.#index.alike.get(alikeKey(messages)) ?? [];
    }
    yield* this.#calls;
  }
}

type Groups = ReadonlyMap<string, readonly RecordedCall[]>;

function groupsOf(calls: readonly RecordedCall[], keyOf: (messages: readonly Message[]) => string): Groups {
  return Map.groupBy(calls, ({ call }) => keyOf(call.messages));
}

function sameKey(messages: readonly Message[]): string {
  return messages.map(messageKey).join(" ");
}

function alikeKey(messages: readonly Message[]): string {
  const parts = messages.at(-1)?.parts ?? [];
  const text = parts.map((part) => (part.type === "text" ? part.text : part.type)).join("\n");
  return `${messages.length} ${withoutValues(text.slice(0, lookedAt))}`;
}
