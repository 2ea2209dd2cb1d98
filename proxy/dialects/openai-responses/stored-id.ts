/** Ids of what clients may refer to: they name the call or the conversation of the record. */
import { isObject } from "../edge.ts";

export function responseId(callId: string): string {
  return `resp_${callId}`;
}

/** The call that a response's id names, or null when the id is not ours. */
export function callOfResponse(id: string): string | null {
  return /^resp_(call[0-9a-z]{20})$/.exec(id)?.[1] ?? null;
}

export function conversationId(id: string): string {
  return `conv_${id}`;
}

/** A request names its conversation by the id, or by an object with the id. */
export function conversationIdOf(value: unknown): string {
  const id = isObject(value) ? value.id : value;
  return typeof id === "string" ? id : "";
}

/** The conversation of the record that an id names; no other begins so. */
export function conversationOf(id: string): string {
  return id.replace(/^conv_/, "");
}
