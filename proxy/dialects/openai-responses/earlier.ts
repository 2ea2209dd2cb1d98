/** What a request goes on from without sending it: an earlier response, or a conversation. */
import { AlidadeError } from "../../../base/errors.ts";
import type { Message } from "../../../base/schema/message.ts";
import type { SessionRecord, StoredCall } from "../dialect.ts";
import { invalid } from "../edge.ts";
import { callOfResponse, conversationIdOf, conversationOf } from "./stored-id.ts";

/** `continues`: the call whose conversation and turn come first. `messages`: the first messages of a conversation without calls. */
type Earlier = { continues: { call_id: string; skip: number } | null; messages: Message[]; conversation_id: string | null };

/** Null where the request says everything itself. Throws `not_found` naming the id. */
export function earlierConversation(body: Record<string, unknown>, record: SessionRecord | undefined): Earlier | null {
  const { previous_response_id: previous, conversation } = body;
  const isGiven = (value: unknown): boolean => value !== null && value !== undefined;
  if (isGiven(previous) && isGiven(conversation)) throw invalid("previous_response_id", "cannot be given together with `conversation`");
  if (isGiven(previous)) return { continues: continuesFrom(previousCall(previous, record)), messages: [], conversation_id: null };
  return isGiven(conversation) ? inConversation(conversationIdOf(conversation), record) : null;
}

function previousCall(id: unknown, record: SessionRecord | undefined): StoredCall {
  if (typeof id !== "string") throw invalid("previous_response_id", `expected a string, received ${typeof id}`);
  const call = record?.call(callOfResponse(id) ?? "");
  if (call?.turn) return call;
  throw new AlidadeError("not_found", `Previous response with id '${id}' not found.`, { param: "previous_response_id" });
}

function inConversation(id: string, record: SessionRecord | undefined): Earlier {
  const found = record?.conversation(conversationOf(id));
  if (!found) throw new AlidadeError("not_found", `Conversation with id '${id}' not found.`, { param: "conversation" });
  const latest = found.latest_call_id === null ? null : (record?.call(found.latest_call_id) ?? null);
  const { conversation_id } = found;
  return latest
    ? { continues: continuesFrom(latest), messages: [], conversation_id }
    : { continues: null, messages: found.messages, conversation_id };
}

/** Each request brings its own instructions; they are never inherited. */
function continuesFrom(call: StoredCall): { call_id: string; skip: number } {
  return { call_id: call.context.call_id, skip: instructionsOf(call) };
}

/** How many leading messages of a call are its own instructions. */
export function instructionsOf({ context }: StoredCall): number {
  return context.native.has_instructions === true ? 1 : 0;
}
