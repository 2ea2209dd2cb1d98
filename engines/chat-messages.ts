/** The neutral conversation in the shape of chat completions, as servers with a chat template take it. */
import { argumentsObject } from "../schema/arguments.ts";
import type { Message, Part, Tool, ToolCallPart, ToolChoice, ToolResultPart } from "../schema/message.ts";
import { keptBytes } from "../tokens/kept-bytes.ts";
import { schemaAsWritten } from "../wire/tool-schema.ts";

/**
 * `roles`: what the served template cannot print goes out under another role (see EngineFacts). `reasoningField`: where
 * the server looks for the reasoning of earlier turns; null: it has no place for it.
 */
export function toChatMessages(
  messages: Message[],
  roles: Record<string, string> = {},
  reasoningField: "reasoning" | "reasoning_content" | null = "reasoning",
): Record<string, unknown>[] {
  const sent = rolesSent(messages, roles);
  return messages.flatMap((message, index) => toWire(message, sent[index] as string, reasoningField));
}

/**
 * A request of these fields with the messages as `messages`. A conversation comes again with every turn, so each of its
 * messages is written once, and as bytes, for as text it would be on the heap a second time; so is a list of tools.
 */
export function chatRequestJson(
  fields: Record<string, unknown>,
  { messages, tools, more = [] }: Asked,
  roles: Record<string, string> = {},
): Buffer {
  const sent = rolesSent(messages, roles);
  const pieces: Buffer[] = [Buffer.from(JSON.stringify(fields).slice(0, -1)), ...more];
  if (tools.length > 0) pieces.push(toolsKey, toolsWritten(tools));
  pieces.push(messagesKey);
  for (const [index, message] of messages.entries()) {
    const item = writtenAs(message, sent[index] as string);
    if (item.length > 0) pieces.push(item, comma);
  }
  // Behind the last item, or the bracket where there is none.
  if (pieces.at(-1) === comma) pieces.pop();
  // It is kept until the answer is over.
  return keptBytes(...pieces, end);
}

/** `more`: fields that are written already, each with a comma before it. */
type Asked = { messages: Message[]; tools: Tool[]; more?: readonly Buffer[] };

const toolsKey = Buffer.from(',"tools":');
const messagesKey = Buffer.from(',"messages":[');
const comma = Buffer.from(",");
const end = Buffer.from("]}");
const written = new WeakMap<Message, { role: string; bytes: Buffer }>();
const writtenTools = new WeakMap<Tool[], Buffer>();

function toolsWritten(tools: Tool[]): Buffer {
  const known = writtenTools.get(tools) ?? keptBytes(Buffer.from(JSON.stringify(toChatTools(tools))));
  writtenTools.set(tools, known);
  return known;
}

function writtenAs(message: Message, role: string): Buffer {
  const known = written.get(message);
  if (known?.role === role) return known.bytes;
  const bytes = keptBytes(Buffer.from(JSON.stringify(toWire(message, role, "reasoning")).slice(1, -1)));
  written.set(message, { role, bytes });
  return bytes;
}

/** A tool message of several results is as many messages on the wire. */
function toWire(message: Message, role: string, reasoningField: "reasoning" | "reasoning_content" | null): Record<string, unknown>[] {
  if (message.role === "tool") return toToolMessages(message);
  if (message.role === "assistant") return [toAssistant(message, reasoningField)];
  return [{ role, content: toContent(message.parts) }];
}

function rolesSent(messages: Message[], roles: Record<string, string>): string[] {
  const first = messages.findIndex((message) => message.role !== "system" && message.role !== "developer");
  return messages.map(({ role }, index) => roleSent(role, roles, first !== -1 && index > first));
}

/** The role under which a turn goes out; `later`: the conversation has begun before it. */
function roleSent(role: string, roles: Record<string, string>, later: boolean): string {
  const sent = roles[role] ?? role;
  return (later ? roles[`${sent} (later)`] : undefined) ?? sent;
}

export function toChatToolChoice(choice: ToolChoice | null): unknown {
  if (choice === null) return "auto";
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

export function toChatTools(tools: Tool[]): Record<string, unknown>[] {
  return tools.map((tool) => ({
    type: "function",
    function: {
      name: tool.name,
      ...(tool.description === undefined ? {} : { description: tool.description }),
      parameters: schemaAsWritten(tool),
      ...(tool.strict === undefined ? {} : { strict: tool.strict }),
    },
  }));
}

/**
 * A message of text only is a string, as most templates want it: several texts with a line break between, as vLLM itself
 * joins them. (Of a list some templates print the first text alone.) Images keep the list.
 */
function toContent(parts: readonly Part[]): string | Record<string, unknown>[] {
  if (parts.every((part) => part.type === "text")) return parts.map((part) => part.text).join("\n");
  return parts.flatMap((part): Record<string, unknown>[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type === "image")
      return [{ type: "image_url", image_url: { url: part.url, ...(part.detail ? { detail: part.detail } : {}) } }];
    return [];
  });
}

function toAssistant(message: Message, reasoningField: string | null): Record<string, unknown> {
  const text = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const reasoning = message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  const calls = message.parts.filter((part) => part.type === "tool_call");
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(reasoning === "" || reasoningField === null ? {} : { [reasoningField]: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: toArguments(call) } })),
        }),
  };
}

/**
 * Servers parse the arguments before they render them, and some fail the request where they are no JSON. Text that is no
 * JSON object is sent as a JSON string of itself, which templates print as it is; but vLLM 0.32 prints `{}` for it. Only
 * a prompt that goes on from the sampled tokens has it there as it was said.
 */
function toArguments(call: ToolCallPart): string {
  if (call.kind === "custom") return JSON.stringify({ input: call.arguments });
  return argumentsObject(call.arguments) ? call.arguments : JSON.stringify(call.arguments);
}

/** One tool message a result. An error has no slot in chat templates, so it is said in front of the text. */
function toToolMessages(message: Message): Record<string, unknown>[] {
  return message.parts.flatMap((part) => {
    if (part.type !== "tool_result") return [];
    return [{ role: "tool", tool_call_id: part.call_id, content: toContent(part.is_error ? asError(part.content) : part.content) }];
  });
}

function asError([first, ...rest]: ToolResultPart["content"]): ToolResultPart["content"] {
  const mark = "[tool error] ";
  if (first?.type === "text") return [{ ...first, text: mark + first.text }, ...rest];
  return [{ type: "text", text: mark }, ...(first ? [first] : []), ...rest];
}
