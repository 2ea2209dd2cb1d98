/**
 * The storage base of a list: the earlier call whose own list (input ‖ output) begins most like it, so that the log holds
 * every message and token of a growing conversation once. It says nothing about parents.
 */
import type { Message } from "../../base/schema/message.ts";
import { type Call, isSameMessage } from "./call.ts";
import type { Delta } from "./prompt-tokens.ts";
import type { Session } from "./session.ts";

/**
 * Candidates are few on purpose: the parent by identity and the latest calls; a missed base costs bytes only. One that
 * is not in the log yet is none: on a full disk it never gets there, and what names it could not be read.
 */
export function storageBases(session: Session, parent: Call | null, agent: string): Call[] {
  const all = [...session.state.calls.values()];
  const latest = all.findLast((call) => call.begun.agent === agent);
  return [...new Set([parent, latest, all.at(-1)])].filter((call) => call !== null && call !== undefined);
}

/** The delta, and the whole list with the base's own message objects, so that a conversation is in memory once. */
export function messageDelta(bases: Call[], messages: Message[]): { delta: Delta<Message>; whole: Message[] } {
  const best = longest(bases, (call) => commonMessages(call.conversation, messages));
  if (!best) return { delta: { base_call_id: null, base_len: 0, new: messages }, whole: messages };
  const fresh = messages.slice(best.length);
  return {
    delta: { base_call_id: best.call.id, base_len: best.length, new: fresh },
    whole: [...best.call.conversation.slice(0, best.length), ...fresh],
  };
}

function commonMessages(a: readonly Message[], b: readonly Message[]): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && isSameMessage(a[length] as Message, b[length])) length++;
  return length;
}

function longest(calls: Call[], lengthOf: (call: Call) => number): { call: Call; length: number } | null {
  let best: { call: Call; length: number } | null = null;
  for (const call of calls) {
    const length = lengthOf(call);
    if (length > (best?.length ?? 0)) best = { call, length };
  }
  return best;
}
