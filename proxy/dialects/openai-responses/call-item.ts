/** A tool call as the item that its tool wants: function, freeform, built in, or in a namespace. */
import type { JsonObject } from "../../../base/schema/message.ts";
import type { AnswerContext } from "../dialect.ts";
import { isObject } from "../edge.ts";
import { customInput } from "../openai/custom-tool.ts";
import { builtinCall } from "./builtin-tools.ts";
import type { ItemKind } from "./item-id.ts";

/** `text`: the field that streams, under these events' name; null for an item that comes in one piece. */
export type CallItem = { idKind: ItemKind; fields: JsonObject; text: { field: string; value: string; event: string } | null };

export function callItem(name: string, rawArguments: string, { custom_tools, native }: AnswerContext): CallItem {
  if (custom_tools.has(name)) return streamed("ctc", "custom_tool_call", "input", name, customInput(rawArguments), native);
  const type = entryOf(native.builtin_tools, name);
  const builtin = typeof type === "string" ? builtinCall(type, rawArguments) : null;
  if (builtin !== null) return { ...builtin, text: null };
  return streamed("fc", "function_call", "arguments", name, rawArguments, native);
}

function streamed(idKind: ItemKind, type: string, field: string, name: string, value: string, native: JsonObject): CallItem {
  return { idKind, fields: { type, ...toolName(name, native) }, text: { field, value, event: `response.${type}_${field}` } };
}

/** A flattened name goes out as the namespace and name that it was made from. */
function toolName(name: string, native: JsonObject): { name: string; namespace?: string } {
  const tool = entryOf(native.namespaced_tools, name);
  return isObject(tool) ? { name: String(tool.name), namespace: String(tool.namespace) } : { name };
}

function entryOf(table: unknown, name: string): unknown {
  return isObject(table) && Object.hasOwn(table, name) ? table[name] : undefined;
}
