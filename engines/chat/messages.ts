/** The neutral conversation in the shape of chat completions, as servers with a chat template take it. */
import { imageUrl } from "../../base/media/stored-picture.ts";
import { argumentsObject } from "../../base/schema/arguments.ts";
import { type Message, type Part, Role, type Tool, type ToolCallPart, type ToolChoice } from "../../base/schema/message.ts";
import { joinedText, resultContent } from "../../base/schema/message-text.ts";
import { keptBytes } from "../../base/tokens/kept-bytes.ts";
import { schemaAsWritten } from "../../base/wire/tool-schema.ts";
import type { EngineFacts } from "../engine.ts";

/** What the served template makes necessary (see EngineFacts). */
export type Wording = Pick<EngineFacts, "role_mapping" | "text_lists">;

/** For a server whose template cannot be probed. */
export const plainWording: Wording = { role_mapping: {} };

/** For asking it: no role is mapped and no texts are joined. */
export const verbatimWording: Wording = { role_mapping: {}, text_lists: Role.options };

/** `reasoningField`: where the server looks for the reasoning of earlier turns; null: it has no place for it. */
export function toChatMessages(
  messages: Message[],
  wording: Wording = plainWording,
  reasoningField: "reasoning" | "reasoning_content" | null = "reasoning",
): Record<string, unknown>[] {
  const sent = rolesSent(messages, wording.role_mapping);
  return messages.flatMap((message, index) => toWire(message, formOf(sent[index] as string, wording), reasoningField));
}

/**
 * A request of these fields with the messages as `messages`. A conversation comes again with every turn, so each of its
 * messages is written once, and as bytes, for as text it would be on the heap a second time; so is a list of tools.
 */
export function chatRequestJson(fields: Record<string, unknown>, { messages, tools, more = [] }: ChatPrompt, wording: Wording): Buffer {
  const sent = rolesSent(messages, wording.role_mapping);
  const pieces: Buffer[] = [Buffer.from(JSON.stringify(fields).slice(0, -1)), ...more];
  if (tools.length > 0) pieces.push(toolsKey, toolsWritten(tools));
  pieces.push(messagesKey);
  for (const [index, message] of messages.entries()) {
    const item = writtenAs(message, formOf(sent[index] as string, wording));
    if (item.length > 0) pieces.push(item, comma);
  }
  // Behind the last item, or the bracket where there is none.
  if (pieces.at(-1) === comma) pieces.pop();
  // It is kept until the answer is over.
  return keptBytes(...pieces, end);
}

/** `more`: fields that are written already, each with a comma before it. */
type ChatPrompt = { messages: Message[]; tools: Tool[]; more?: readonly Buffer[] };

const toolsKey = Buffer.from(',"tools":');
const messagesKey = Buffer.from(',"messages":[');
const comma = Buffer.from(",");
const end = Buffer.from("]}");
const written = new WeakMap<Message, Form & { bytes: Buffer }>();
const writtenTools = new WeakMap<Tool[], Buffer>();

function toolsWritten(tools: Tool[]): Buffer {
  const known = writtenTools.get(tools) ?? keptBytes(Buffer.from(JSON.stringify(toChatTools(tools))));
  writtenTools.set(tools, known);
  return known;
}

function writtenAs(message: Message, form: Form): Buffer {
  const known = written.get(message);
  if (known?.role === form.role && known.isList === form.isList) return known.bytes;
  const bytes = keptBytes(Buffer.from(JSON.stringify(toWire(message, form, "reasoning")).slice(1, -1)));
  written.set(message, { ...form, bytes });
  return bytes;
}

/** The role under which a message goes out, and whether several texts of it do as a list. */
type Form = { role: string; isList: boolean };

function formOf(role: string, { text_lists = [] }: Wording): Form {
  return { role, isList: text_lists.includes(role as Role) };
}

/** A tool message of several results is as many messages on the wire. */
function toWire(message: Message, form: Form, reasoningField: "reasoning" | "reasoning_content" | null): Record<string, unknown>[] {
  if (message.role === "tool") return toToolMessages(message, form);
  if (message.role === "assistant") return [toAssistant(message, form, reasoningField)];
  return [{ role: form.role, ...(message.name === undefined ? {} : { name: message.name }), content: toContent(message.parts, form) }];
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
      ...(tool.parameters === null ? {} : { parameters: schemaAsWritten(tool) }),
      ...(tool.strict === undefined ? {} : { strict: tool.strict }),
    },
  }));
}

/** One text is a string. So are several where the template is not known to print them: of a list some print the first alone. */
function toContent(parts: readonly Part[], { isList }: Form): string | Record<string, unknown>[] {
  if (parts.every((part) => part.type === "text") && (parts.length < 2 || !isList)) return joinedText(parts);
  return parts.flatMap((part): Record<string, unknown>[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type === "image")
      return [{ type: "image_url", image_url: { url: imageUrl(part), ...(part.detail ? { detail: part.detail } : {}) } }];
    return [];
  });
}

function toAssistant(message: Message, form: Form, reasoningField: string | null): Record<string, unknown> {
  // A turn that another model made may show pictures.
  const shown = message.parts.filter((part) => part.type === "text" || part.type === "image");
  // What a call parts was sampled in one breath, and is no list.
  const isOne = shown.length > 1 && !message.parts.some((part, at) => isShown(part) && isShown(message.parts[at - 1]));
  const content = isOne && shown.every(({ type }) => type === "text") ? joinedText(message.parts) : toContent(shown, form);
  const reasoning = message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  const calls = message.parts.filter((part) => part.type === "tool_call");
  return {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    ...(reasoning === "" || reasoningField === null ? {} : { [reasoningField]: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: toArguments(call) } })),
        }),
  };
}

function isShown(part: Part | undefined): boolean {
  return part?.type === "text" || part?.type === "image";
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

/** One tool message a result. */
function toToolMessages(message: Message, form: Form): Record<string, unknown>[] {
  return message.parts.flatMap((part) => {
    if (part.type !== "tool_result") return [];
    return [{ role: "tool", tool_call_id: part.call_id, content: toContent(resultContent(part), form) }];
  });
}
