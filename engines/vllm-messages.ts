/** The neutral conversation in the shape of vLLM's chat completions. */
import type { Message, Part, Tool, ToolCallPart } from "../schema/message.ts";

/** `roles`: what the served template cannot print goes out under another role. */
export function toChatMessages(messages: Message[], roles: Record<string, string> = {}): Record<string, unknown>[] {
  return messages.flatMap((message) =>
    message.role === "tool" ? toToolMessages(message) : message.role === "assistant" ? [toAssistant(message)] : [toPlain(message, roles)],
  );
}

export function toChatTools(tools: Tool[]): Record<string, unknown>[] {
  return tools.map((tool) => ({
    type: "function",
    function: {
      name: tool.name,
      ...(tool.description === undefined ? {} : { description: tool.description }),
      parameters: tool.parameters,
      ...(tool.strict === undefined ? {} : { strict: tool.strict }),
    },
  }));
}

function toPlain(message: Message, roles: Record<string, string>): Record<string, unknown> {
  return { role: roles[message.role] ?? message.role, content: toContent(message.parts) };
}

/** A message of text only is a string, as most templates want it; images keep the list. */
function toContent(parts: readonly Part[]): string | Record<string, unknown>[] {
  if (parts.every((part) => part.type === "text")) return parts.map((part) => part.text).join("");
  return parts.flatMap((part): Record<string, unknown>[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type === "image")
      return [{ type: "image_url", image_url: { url: part.url, ...(part.detail ? { detail: part.detail } : {}) } }];
    return [];
  });
}

function toAssistant(message: Message): Record<string, unknown> {
  const text = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const reasoning = message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  const calls = message.parts.filter((part) => part.type === "tool_call");
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(reasoning === "" ? {} : { reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: toArguments(call) } })),
        }),
  };
}

/**
 * vLLM parses the arguments before it renders them, and fails the request where they are no JSON. Text that is no
 * JSON object is sent as a JSON string of itself: it parses to that text, which templates print as it is.
 */
function toArguments(call: ToolCallPart): string {
  if (call.kind === "custom") return JSON.stringify({ input: call.arguments });
  return isJsonObject(call.arguments) ? call.arguments : JSON.stringify(call.arguments);
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** One tool message a result. An error has no slot in chat templates, so it is said in front of the text. */
function toToolMessages(message: Message): Record<string, unknown>[] {
  return message.parts.flatMap((part) => {
    if (part.type !== "tool_result") return [];
    const content = part.is_error ? [{ type: "text" as const, text: "[tool error] " }, ...part.content] : part.content;
    return [{ role: "tool", tool_call_id: part.call_id, content: toContent(content) }];
  });
}
