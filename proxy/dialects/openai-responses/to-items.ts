/** A stored conversation as the items that a client would have sent. */
import { imageUrl } from "../../../base/media/stored-picture.ts";
import type { Message, Part } from "../../../base/schema/message.ts";
import type { AnswerContext } from "../dialect.ts";
import { callItem } from "./call-item.ts";

type AnswerItem = Record<string, unknown> & { id: string };

/** Ids name the place in this call's conversation; they are no answer's own. */
export function toItems(messages: Message[], context: AnswerContext): AnswerItem[] {
  const screenCalls = new Set<string>();
  const items = messages.flatMap((message) => itemsOf(message, context, screenCalls));
  return items.map((item, index) => ({ id: `item_${context.call_id}n${index}`, ...item }));
}

/** `screenCalls`: ids of the calls so far that were shown as a screen's, whose results have a form of their own. */
function itemsOf(message: Message, context: AnswerContext, screenCalls: Set<string>): Record<string, unknown>[] {
  const { role, parts } = message;
  if (role === "tool")
    return parts.flatMap((part) => (part.type === "tool_result" ? [resultItem(part, screenCalls.has(part.call_id))] : []));
  if (role !== "assistant") return [{ type: "message", status: "completed", role, content: parts.flatMap(contentOf) }];
  return parts.flatMap((part): Record<string, unknown>[] => {
    switch (part.type) {
      case "text":
        return [
          {
            type: "message",
            status: "completed",
            role,
            content: [{ type: "output_text", text: part.text, annotations: [], logprobs: [] }],
          },
        ];
      case "reasoning":
        return [
          {
            type: "reasoning",
            summary: [],
            content: [{ type: "reasoning_text", text: part.text }],
            encrypted_content: part.carrier ?? null,
          },
        ];
      case "tool_call": {
        // Sent by the client itself, as a freeform tool's raw input.
        if (part.kind === "custom")
          return [{ type: "custom_tool_call", call_id: part.id, name: part.name, input: part.arguments, status: "completed" }];
        const { fields, text } = callItem(part.name, part.arguments, context);
        if (fields.type === "computer_call") screenCalls.add(part.id);
        return [{ ...fields, call_id: part.id, ...(text && { [text.field]: text.value }), status: "completed" }];
      }
      default:
        return [];
    }
  });
}

function resultItem({ call_id, content }: Extract<Part, { type: "tool_result" }>, isScreen: boolean): Record<string, unknown> {
  const [only] = content;
  if (isScreen && content.length === 1 && only?.type === "image") {
    const screenshot = { type: "computer_screenshot", image_url: imageUrl(only), ...(only.detail && { detail: only.detail }) };
    return { type: "computer_call_output", call_id, output: screenshot, status: "completed" };
  }
  const output = content.length === 1 && only?.type === "text" ? only.text : content.flatMap(contentOf);
  return { type: "function_call_output", call_id, output, status: "completed" };
}

function contentOf(part: Part): Record<string, unknown>[] {
  if (part.type === "text") return [{ type: "input_text", text: part.text }];
  return part.type === "image" ? [{ type: "input_image", image_url: imageUrl(part), detail: part.detail ?? "auto" }] : [];
}
