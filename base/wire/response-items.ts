/** A conversation as the items of one response (OpenAI's Responses), as NeMo Gym's servers and trainers read it. */
import { imageUrl } from "../media/stored-picture.ts";
import type { Message, Part, Tool } from "../schema/message.ts";
import { resultContent } from "../schema/message-text.ts";
import { schemaAsWritten } from "./tool-schema.ts";

export type ResponseItem = Record<string, unknown>;

/** An item whose `id` is "" wants one of its place. */
export function responseItems(message: Message): ResponseItem[] {
  return message.parts.map((part): ResponseItem => responseItem(part, message));
}

export function outputMessage(text: string): ResponseItem {
  return { type: "message", id: "", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
}

export function withItemIds(items: readonly ResponseItem[]): ResponseItem[] {
  return items.map((item, at) => (item.id === "" ? { ...item, id: `item_${at}` } : item));
}

export function responseTool(tool: Tool): ResponseItem {
  const { name, description, strict } = tool;
  return { type: "function", name, description: description ?? null, parameters: schemaAsWritten(tool), strict: strict ?? null };
}

function responseItem(part: Part, { role }: Message): ResponseItem {
  switch (part.type) {
    case "tool_call":
      return {
        type: "function_call",
        id: part.id,
        call_id: part.id,
        name: part.name,
        // A custom tool is a function with one string to the model.
        arguments: part.kind === "custom" ? JSON.stringify({ input: part.arguments }) : part.arguments,
        status: "completed",
      };
    case "tool_result":
      return { type: "function_call_output", call_id: part.call_id, output: textOf(resultContent(part)) };
    case "reasoning":
      return { type: "reasoning", id: "", summary: [{ type: "summary_text", text: part.text }] };
    case "image":
      return { type: "message", role, content: [{ type: "input_image", image_url: imageUrl(part), detail: part.detail ?? "auto" }] };
    case "text":
      return role === "assistant"
        ? outputMessage(part.text)
        : { type: "message", role: role === "tool" ? "user" : role, content: part.text };
  }
}

/** A tool's output is one string there: an image in it is named, not shown. */
function textOf(content: Extract<Part, { type: "tool_result" }>["content"]): string {
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join("\n");
}
