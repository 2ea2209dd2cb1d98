/** What of a session its harness may ask for and refer to: a dialect's own calls, and the conversations it opened. */

import { withBytes } from "../../../base/media/media.ts";
import { mintToolCallId, newId } from "../../../base/schema/ids.ts";
import { type Message, toolCallsOf } from "../../../base/schema/message.ts";
import type { Dialect, SessionRecord, StoredCall, StoredConversation } from "../../dialects/index.ts";
import type { Call } from "../../session/call.ts";
import { fromErrorRecord } from "../../session/error-record.ts";
import type { Session } from "../../session/session.ts";
import { assertLogHasRoom } from "../admit.ts";
import { keepPictures } from "../keep-pictures.ts";
import { contextOf, mintedTurn } from "../relay.ts";

/** `onRead` is called with each call whose turn this request proves to have arrived. */
export function sessionRecord(session: Session, dialect: Dialect, onRead: (call: Call) => void = () => undefined): SessionRecord {
  const call = (callId: string): Call | null => {
    const found = session.call(callId);
    return found && mayBeReferredTo(session, found, dialect) ? found : null;
  };
  const conversation = (id: string): StoredConversation | null => {
    const { conversations, deleted, calls } = session.state;
    const opened = conversations.get(id);
    if (!opened || deleted.has(id)) return null;
    const latest = [...calls.values()].findLast((one) => one.turn && one.begun.native.conversation_id === id && call(one.id));
    const { conversation_id, time, metadata } = opened;
    const messages = withBytes(opened.messages, session.media);
    return { conversation_id, created: Math.floor(time / 1000), metadata, messages, latest_call_id: latest?.id ?? null };
  };
  return {
    call: (callId) => {
      const found = call(callId);
      return found && storedCall(session, found);
    },
    turn: (callId) => session.turnOf(callId),
    read(callId) {
      const found = session.call(callId);
      if (found) onRead(found);
    },
    conversation,
    async openConversation(messages, metadata) {
      session.assertOpen();
      assertLogHasRoom(session);
      const entry = {
        type: "conversation" as const,
        time: Date.now(),
        conversation_id: newId("conv"),
        messages: keepPictures(session, messages),
        metadata,
      };
      await session.record(entry);
      return conversation(entry.conversation_id) as StoredConversation;
    },
    async delete(id) {
      session.assertOpen();
      assertLogHasRoom(session);
      await session.record({ type: "deleted", time: Date.now(), id });
    },
  };
}

/** With `store: false` no request may refer to the answer. */
function mayBeReferredTo(session: Session, call: Call, dialect: Dialect): boolean {
  return call.begun.dialect === dialect.name && call.begun.native.store !== false && !session.state.deleted.has(call.id);
}

function storedCall(session: Session, call: Call): StoredCall {
  const error = call.outcome?.error ?? null;
  return {
    context: contextOf(session, call),
    get messages() {
      return withBytes(withOurIds(session, call), session.media);
    },
    turn: call.turn && mintedTurn(call),
    error: error && fromErrorRecord(error),
  };
}

/** The conversation as its harness knows it: the engine's tool-call ids are ours again. */
function withOurIds(session: Session, call: Call): Message[] {
  const ours = new Map<string, string>();
  return call.messages.map((message, messageIndex) => {
    const source = call.begun.restored.find((one) => one.message_index === messageIndex && one.status !== "edited");
    const calls = source ? toolCallsOf(session.turnOf(source.from_call_id)?.message ?? message) : [];
    for (const [index, { id }] of calls.entries()) ours.set(id, mintToolCallId(source?.from_call_id ?? "", index));
    const parts = message.parts.map((part) => {
      if (part.type === "tool_call") return { ...part, id: ours.get(part.id) ?? part.id };
      return part.type === "tool_result" ? { ...part, call_id: ours.get(part.call_id) ?? part.call_id } : part;
    });
    return { ...message, parts };
  });
}
