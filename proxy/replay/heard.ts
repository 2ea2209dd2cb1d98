/**
 * What the harness sends now, and what was recorded at the same place. Later requests hold the same messages again, and the
 * engine gets the recorded ones. A message is found by its content and its distance from the turn of ours before it, so it does
 * not matter what the harness does to its history further up.
 */
import type { Message } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import { type Call, messageKey } from "../session/call.ts";

/** A request as restore leaves it. */
export type RestoredRequest = { messages: Message[]; restored: Restored[]; parent: Call | null };

export class Heard {
  readonly #recorded = new Map<string, Message>();

  /** Both lists have one message at each place. */
  add(sent: RestoredRequest, recorded: readonly Message[]): void {
    for (const [index, key] of keysOf(sent).entries()) {
      const message = recorded[index];
      if (message !== undefined && message.role !== "assistant") this.#recorded.set(key, message);
    }
  }

  /** Returns the message recorded `distance` messages after `turn` for this one. Returns `message` itself if none is recorded. */
  recordedFor(message: Message, turn: string, distance: number): Message {
    return this.#recorded.get(keyOf(message, turn, distance)) ?? message;
  }

  /** The request with recorded messages in the place of those that were sent for them; itself where it holds none. */
  asRecorded(sent: RestoredRequest): RestoredRequest {
    if (this.#recorded.size === 0) return sent;
    const keys = keysOf(sent);
    const messages = sent.messages.map((message, index) => this.#recorded.get(keys[index] ?? "") ?? message);
    return messages.every((message, index) => message === sent.messages[index]) ? sent : { ...sent, messages };
  }
}

function keysOf({ messages, restored }: RestoredRequest): string[] {
  const turns = new Map(restored.map(({ message_index, from_call_id }) => [message_index, from_call_id]));
  let [turn, from] = ["", 0];
  return messages.map((message, index) => {
    const own = turns.get(index);
    if (own !== undefined) [turn, from] = [own, index];
    return keyOf(message, turn, index - from);
  });
}

function keyOf(message: Message, turn: string, distance: number): string {
  return `${turn} ${distance} ${messageKey(message)}`;
}
