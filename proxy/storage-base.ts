/**
 * The storage base of a list: the earlier call whose own list (input ‖ output) begins most like it, so that the log
 * holds every message and token of a growing conversation once. It says nothing about whose turn was whose.
 */

import type { Message } from "../schema/message.ts";
import { type Head, IdText, parseIds } from "../tokens/id-text.ts";
import { type Call, messageKey } from "./call.ts";
import type { Session } from "./session.ts";

export type Delta<T> = { base_call_id: string | null; base_len: number; new: T[] };

/** Candidates are few on purpose: the parent by identity and the latest calls; a missed base costs bytes only. */
export function storageBases(session: Session, parent: Call | null, agent: string): Call[] {
  const all = [...session.calls.values()];
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

/** A prompt as the log stores it, and whole. */
export type PromptTokens = { delta: Delta<number>; whole: IdText };

/** Only what no base has is parsed. Throws what asking the engine's event for its ids throws, where they are none. */
export function promptTokens(bases: readonly Call[], prompt: { readonly token_ids: number[]; text?: Buffer }): PromptTokens {
  const text = prompt.text ?? Buffer.from(prompt.token_ids.join(","));
  const best = longestHead(bases, text);
  if (!best) {
    const { token_ids } = prompt;
    return { delta: { base_call_id: null, base_len: 0, new: token_ids }, whole: IdText.ofText(text, token_ids.length) };
  }
  const { call, known, head } = best;
  const tail = text.subarray(Math.min(head.bytes + 1, text.length));
  const fresh = parseIds(tail) ?? prompt.token_ids.slice(head.ids);
  return {
    delta: { base_call_id: call.id, base_len: head.ids, new: fresh },
    whole: known.extendText(head, tail, fresh.length),
  };
}

function longestHead(bases: readonly Call[], text: Buffer): { call: Call; known: IdText; head: Head } | null {
  let best: { call: Call; known: IdText; head: Head } | null = null;
  for (const call of bases) {
    const known = call.idText;
    const head = known?.commonHead(text);
    if (!known || !head || head.ids <= (best?.head.ids ?? 0)) continue;
    best = { call, known, head };
    // It goes on from all of that call: a longer one is not looked for.
    if (head.ids === known.length) break;
  }
  return best;
}

function commonMessages(a: readonly Message[], b: readonly Message[]): number {
  const limit = Math.min(a.length, b.length);
  let length = 0;
  while (length < limit && sameMessage(a[length] as Message, b[length] as Message)) length++;
  return length;
}

function sameMessage(a: Message, b: Message): boolean {
  return a === b || messageKey(a) === messageKey(b);
}

function longest(calls: Call[], lengthOf: (call: Call) => number): { call: Call; length: number } | null {
  let best: { call: Call; length: number } | null = null;
  for (const call of calls) {
    const length = lengthOf(call);
    if (length > (best?.length ?? 0)) best = { call, length };
  }
  return best;
}
