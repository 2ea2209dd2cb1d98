/**
 * The messages that the agents of a session have sent so far. A harness sends its whole conversation with every turn. A
 * repeated message at the same position behind the same messages is replaced by the earlier object, so facts about a
 * message (its turn, its identity, its wire text) are computed once.
 */
import type { Message } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import { GrowingJson } from "../../base/wire/growing-json.ts";
import { sameJson } from "../../base/wire/same-json.ts";
import type { Call } from "./call.ts";

/** A message of the assistant and the call that sampled it; `record` is null where no call did. */
export type RestoredTurn = {
  message: Message;
  call: Call | null;
  record: Omit<Restored, "message_index"> | null;
  /** Calls that came back under ids of the harness's own: its id, and the engine's. */
  renamed: [string, string][];
};

export class SentBefore {
  /** Its requests as JSON: each stands in the next one nearly whole. */
  readonly bodies = new GrowingJson();
  /** Images that were fetched for it, as `data:` URLs, by the address that its client gave. */
  readonly images = new Map<string, string>();
  /** Sent message -> its turn, or the fact that no call sampled it. */
  readonly turns = new WeakMap<Message, RestoredTurn>();
  /** Messages that are no turn of ours as the engine gets them, by the message as it was sent. */
  readonly passed = new WeakMap<Message, Message>();
  /** Messages as the engine gets them, with their pictures stored. */
  readonly stored = new WeakMap<Message, Message>();
  /** Neighbouring messages of the assistant, by the first: how many of those up to the last are one turn of ours together. */
  readonly joined = new WeakMap<Message, { last: Message; length: number; turn: RestoredTurn | null }>();
  readonly #latest = new Map<string, readonly Message[]>();

  /** The conversation that an agent sends now, in the objects of its last one as far as the two say the same. */
  recall(agent: string, sent: Message[]): Message[] {
    const before = this.#latest.get(agent) ?? [];
    const limit = Math.min(before.length, sent.length);
    let known = 0;
    while (known < limit && sameJson(before[known], sent[known])) known++;
    const messages = known === 0 ? sent : [...before.slice(0, known), ...sent.slice(known)];
    this.#latest.set(agent, messages);
    return messages;
  }

  clear(): void {
    this.bodies.clear();
    this.images.clear();
    this.#latest.clear();
  }
}
