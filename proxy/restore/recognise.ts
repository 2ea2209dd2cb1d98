/** Finds the call that sampled a turn: by the tool-call ids that we minted, else by our carrier, else by its text, else by its position. */

import { type Message, textOf, toolCallsOf } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import { fromCarrier } from "../dialects/index.ts";
import { type Call, isSameMessage } from "../session/call.ts";
import type { Session } from "../session/session.ts";
import { idInText, ownId } from "./own-id.ts";

/** `isUnsure`: several turns have this content, and none answered this conversation. */
export type Recognised = { call: Call; evidence: Restored["evidence"]; isUnsure?: boolean };

/** `before` is the conversation in front of the turn, restored. */
export function recognise(session: Session, sent: Message, before: readonly Message[]): Recognised | null {
  const named = (id: { call_id: string } | null): Call | undefined => session.call(id?.call_id);
  const calls = toolCallsOf(sent);
  for (const { id } of calls) {
    const call = named(ownId(id));
    if (call) return { call, evidence: "tool_call_id" };
  }
  for (const part of sent.parts) {
    const call = part.type === "reasoning" && part.carrier ? session.call(fromCarrier(part.carrier)) : undefined;
    if (call) return { call, evidence: "carrier" };
  }
  const inText = calls.length === 0 ? named(idInText(textOf(sent))) : undefined;
  const same = session.state.emitted.find(sent, before);
  // A text of ours may mention an earlier call's id. At its own position it is its own turn, not that call's.
  if (inText && !same?.isHere) return { call: inText, evidence: "tool_call_id" };
  if (same) return { call: same.call, evidence: "content", isUnsure: !same.isSure };
  const call = edited(session, sent, before);
  return call ? { call, evidence: "content" } : null;
}

/** An edited turn at the position of a sampled one. It must contain some of our text; other text there is a foreign message. */
function edited(session: Session, sent: Message, before: readonly Message[]): Call | undefined {
  return session.state.emitted.at(before.length).findLast((call) => {
    const emitted = call.turn?.message;
    return emitted && sharesWords(emitted, sent) && call.messages.every((message, index) => isSameMessage(message, before[index]));
  });
}

function sharesWords(emitted: Message, sent: Message): boolean {
  const theirs = wordsOf(sent);
  const ours = wordsOf(emitted);
  return theirs.some((one) => ours.some((other) => one.includes(other) || other.includes(one)));
}

function wordsOf(message: Message): string[] {
  return message.parts
    .map((part) => (part.type === "text" || part.type === "reasoning" ? part.text.trim() : ""))
    .filter((text) => text !== "");
}
