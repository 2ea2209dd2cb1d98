/** Neutral messages as OpenAI chat messages, the form that SFT trainers and chat templates read. */
import { imageUrl } from "../../base/media/stored-picture.ts";
import type { Message, Part, Tool } from "../../base/schema/message.ts";
import { joinedText, resultContent } from "../../base/schema/message-text.ts";
import { schemaAsWritten } from "../../base/wire/tool-schema.ts";

export type RowMessage = {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  /** The speaker within the role. */
  name?: string;
  content: string | ChatContent[] | null;
  reasoning_content?: string;
  tool_calls?: ChatToolCall[];
  tool_call_id?: string;
  /** On assistant messages: 1 is learned from in this row, 0 is context. */
  weight?: 0 | 1;
};

type ChatContent = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string; detail?: string } };

type ChatToolCall =
  | { id: string; type: "function"; function: { name: string; arguments: string } }
  | { id: string; type: "custom"; custom: { name: string; input: string } };

/** One neutral message may be several: each tool result is a message of its own. */
export function toChatMessages(message: Message): RowMessage[] {
  if (message.role === "assistant") return [toAssistant(message)];
  const results = message.parts.filter((part) => part.type === "tool_result");
  const rest = message.parts.filter((part) => part.type !== "tool_result");
  const messages: RowMessage[] = results.map((part) => ({
    role: "tool",
    tool_call_id: part.call_id,
    content: toContent(resultContent(part)),
  }));
  if (rest.length > 0 || results.length === 0) {
    const role = message.role === "tool" ? "user" : message.role;
    messages.push({ role, ...(message.name === undefined ? {} : { name: message.name }), content: toContent(rest) });
  }
  return messages;
}

function toAssistant(message: Message): RowMessage {
  const chat: RowMessage = { role: "assistant", content: null };
  const content = toContent(message.parts);
  if (content !== "") chat.content = content;
  const reasoning = message.parts.map((part) => (part.type === "reasoning" ? part.text : "")).join("");
  if (reasoning !== "") chat.reasoning_content = reasoning;
  const calls = message.parts.flatMap(toToolCall);
  if (calls.length > 0) chat.tool_calls = calls;
  return chat;
}

function toToolCall(part: Part): ChatToolCall[] {
  if (part.type !== "tool_call") return [];
  if (part.kind === "custom") return [{ id: part.id, type: "custom", custom: { name: part.name, input: part.arguments } }];
  return [{ id: part.id, type: "function", function: { name: part.name, arguments: part.arguments } }];
}

/** A string where there is only text, else the parts in their order. */
function toContent(parts: Part[]): string | ChatContent[] {
  if (!parts.some((part) => part.type === "image")) return joinedText(parts);
  return parts.flatMap((part): ChatContent[] => {
    if (part.type === "text") return [{ type: "text", text: part.text }];
    if (part.type !== "image") return [];
    return [{ type: "image_url", image_url: { url: imageUrl(part), ...(part.detail === undefined ? {} : { detail: part.detail }) } }];
  });
}

export function toChatTool(tool: Tool): Record<string, unknown> {
  const { name, description, strict } = tool;
  if (tool.kind === "custom") return { type: "custom", custom: { name, ...(description === undefined ? {} : { description }) } };
  return {
    type: "function",
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      ...(tool.parameters === null ? {} : { parameters: schemaAsWritten(tool) }),
      ...(strict === undefined ? {} : { strict }),
    },
  };
}
