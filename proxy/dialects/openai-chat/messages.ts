/** The messages of a chat completions request, in order, of every role. */
import { z } from "zod";
import type { ContentPart, Message, ToolCallPart } from "../../../base/schema/message.ts";
import { checked, invalid, isObject } from "../edge.ts";
import { parseContent, textParts } from "../openai/content.ts";

const WireMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool", "function"]),
  name: z.string().nullish(),
  refusal: z.string().nullish(),
  tool_call_id: z.string().nullish(),
  tool_calls: z.array(z.looseObject({ id: z.string().nullish(), type: z.string().nullish() })).nullish(),
});
type WireMessage = z.output<typeof WireMessage>;

/** The most of a request are its messages, and nearly all are as they should be: the schema is for saying what is wrong. */
function wireMessage(value: unknown, at: string): WireMessage {
  return isWireMessage(value) ? value : checked(WireMessage, value, at);
}

const roles: ReadonlySet<unknown> = new Set(WireMessage.shape.role.options);

function isWireMessage(value: unknown): value is WireMessage {
  if (!isObject(value) || !roles.has(value.role)) return false;
  const { tool_calls: calls } = value;
  return (
    [value.name, value.refusal, value.tool_call_id].every(isText) &&
    (calls === undefined ||
      calls === null ||
      (Array.isArray(calls) && calls.every((call: unknown) => isObject(call) && isText(call.id) && isText(call.type))))
  );
}

const isText = (value: unknown): boolean => typeof value === "string" || value === undefined || value === null;

const FunctionCall = z.looseObject({ name: z.string(), arguments: z.unknown() });
const isFunctionCall = (value: unknown): value is z.output<typeof FunctionCall> => isObject(value) && typeof value.name === "string";
const CustomCall = z.looseObject({ name: z.string(), input: z.string() });

/** By the very object: a conversation comes again with every turn, and what was in it before is read once. */
const known = new WeakMap<object, Message>();

export function parseMessages(values: unknown[]): Message[] {
  const open = new OpenCalls();
  return values.map((value, index) => {
    const wire = value as WireMessage;
    const before = isObject(value) ? known.get(value) : undefined;
    const message = before ?? parseMessage(value, `messages[${index}]`);
    for (const part of message.parts) if (part.type === "tool_call") open.add(part);
    // The preceding messages determine which call a result answers.
    const placed = message.role === "tool" ? answering(message, open.take(wire)) : message;
    if (placed !== before) known.set(wire, placed);
    return placed;
  });
}

function parseMessage(value: unknown, at: string): Message {
  const message = wireMessage(value, at);
  const content = parseContent(message.content, `${at}.content`);
  if (message.role === "assistant") return parseAssistant(message, content, at);
  if (message.role === "tool" || message.role === "function")
    return { role: "tool", parts: [{ type: "tool_result", call_id: "", content, is_error: false }] };
  return { role: message.role, ...(message.name ? { name: message.name } : {}), parts: content };
}

/** A message of a result, of this call. */
function answering(message: Message, call_id: string): Message {
  const [result] = message.parts;
  return result?.type !== "tool_result" || result.call_id === call_id ? message : { ...message, parts: [{ ...result, call_id }] };
}

/** Order on the wire has no place for interleaving: reasoning, text, calls is the order in which models say them. */
function parseAssistant(message: WireMessage, content: ContentPart[], at: string): Message {
  if (isObject(message.audio))
    throw invalid(`${at}.audio`, "names an answer in sound that is kept at its vendor; send its transcript as `content`");
  const reasoning = [message.reasoning_content, message.reasoning].find((text) => typeof text === "string" && text !== "");
  const refusal = content.length === 0 ? textParts(message.refusal ?? "") : [];
  const calls = (message.tool_calls ?? []).map((call, index) => parseCall(call, `${at}.tool_calls[${index}]`));
  if (isObject(message.function_call)) calls.push(parseLegacyCall(message.function_call, at));
  return {
    role: "assistant",
    parts: [...(typeof reasoning === "string" ? [{ type: "reasoning" as const, text: reasoning }] : []), ...content, ...refusal, ...calls],
  };
}

function parseCall(call: Record<string, unknown>, at: string): ToolCallPart {
  const id = typeof call.id === "string" ? call.id : "";
  if (call.type === "custom") {
    const custom = checked(CustomCall, call.custom, `${at}.custom`);
    return { type: "tool_call", id, name: custom.name, arguments: custom.input, kind: "custom" };
  }
  const called = isFunctionCall(call.function) ? call.function : checked(FunctionCall, call.function, `${at}.function`);
  return { type: "tool_call", id, name: called.name, arguments: rawArguments(called.arguments), kind: "function" };
}

/** The form before tool calls had ids. */
function parseLegacyCall(value: Record<string, unknown>, at: string): ToolCallPart {
  const called = checked(FunctionCall, value, `${at}.function_call`);
  return { type: "tool_call", id: "", name: called.name, arguments: rawArguments(called.arguments), kind: "function" };
}

/** Some clients send the object instead of its text. */
function rawArguments(value: unknown): string {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
}

/** Calls that wait for their result, for clients that do not name the call by `tool_call_id`. */
class OpenCalls {
  /** In the order in which they were made; each is looked up by its id and name, for there may be thousands. */
  readonly #calls = new Set<ToolCallPart>();
  readonly #byId = new Map<string, Set<ToolCallPart>>();
  readonly #byName = new Map<string, Set<ToolCallPart>>();

  add(call: ToolCallPart): void {
    this.#calls.add(call);
    addTo(this.#byId, call.id, call);
    addTo(this.#byName, call.name, call);
  }

  /** The id of the call that a tool message answers: as named, else the oldest open call of that name, else the oldest. */
  take(message: WireMessage): string {
    const extra = isObject(message.extra) ? message.extra.function_id : undefined;
    const byId = (id: unknown): ToolCallPart | undefined => (typeof id === "string" ? first(this.#byId.get(id)) : undefined);
    const named = byId(message.tool_call_id) ?? byId(extra) ?? byId(message.id);
    const unnamed = message.tool_call_id ? undefined : (first(this.#byName.get(message.name ?? "")) ?? first(this.#calls));
    const found = named ?? unnamed;
    if (found) this.#delete(found);
    return found?.id ?? message.tool_call_id ?? "";
  }

  #delete(call: ToolCallPart): void {
    this.#calls.delete(call);
    this.#byId.get(call.id)?.delete(call);
    this.#byName.get(call.name)?.delete(call);
  }
}

function addTo<Key, Item>(map: Map<Key, Set<Item>>, key: Key, item: Item): void {
  const set = map.get(key);
  if (set) set.add(item);
  else map.set(key, new Set([item]));
}

function first<Item>(set: Set<Item> | undefined): Item | undefined {
  return set?.values().next().value;
}
