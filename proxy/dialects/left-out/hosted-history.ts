/**
 * What a vendor's own tools did in a conversation that began there. It is history, so the model here gets it: as a call and
 * its result, for templates know no other form. What the vendor alone can read (`encrypted_content`) stays out.
 */
import type { ContentPart, Message, ToolCallPart } from "../../../base/schema/message.ts";
import { isObject, type JsonObject } from "../edge.ts";

export function hostedCall(id: string, name: string, input: unknown): ToolCallPart {
  return { type: "tool_call", id, name, arguments: typeof input === "string" ? input : JSON.stringify(input ?? {}), kind: "function" };
}

export function hostedResult(call_id: string, content: ContentPart[], isError = false): Message {
  return { role: "tool", parts: [{ type: "tool_result", call_id, content, is_error: isError }] };
}

/** Readable values as text: a text as it is, all else as JSON. Nothing: no part. */
export function shownValue(value: unknown): ContentPart[] {
  const shown = readable(value);
  if (shown === undefined || shown === null || shown === "") return [];
  return [{ type: "text", text: typeof shown === "string" ? shown : JSON.stringify(shown) }];
}

/** These fields of an object; those without a value are left out. */
export function picked(object: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.flatMap((key) => (object[key] === undefined || object[key] === null ? [] : [[key, object[key]]])));
}

function readable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readable);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (key.startsWith("encrypted_") ? [] : [[key, readable(inner)]])),
  );
}
