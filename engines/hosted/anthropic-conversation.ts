/**
 * The neutral conversation in the form of Anthropic's Messages API. Two things have no field there. A later system turn
 * becomes a user turn. A call whose arguments are no JSON object becomes text, and so does its result. Reasoning of other
 * models has no Anthropic signature and is left out.
 */
import type Anthropic from "@anthropic-ai/sdk";
import { imageUrl } from "../../base/media/stored-picture.ts";
import { argumentsObject } from "../../base/schema/arguments.ts";
import type { Message, Part, Tool } from "../../base/schema/message.ts";
import { schemaAsWritten } from "../../base/wire/tool-schema.ts";
import { readImageUrl } from "../chat/data-url.ts";

type ContentBlock = Anthropic.ContentBlockParam;
type Shown = { type: "text"; text: string } | Anthropic.ImageBlockParam;

/** `system` is empty where there is none. Turns of one side that follow each other are one message, as the API has it. */
export function toAnthropicMessages(messages: Message[]): { system: string; messages: Anthropic.MessageParam[] } {
  const begins = messages.findIndex((message) => message.role !== "system" && message.role !== "developer");
  const head = begins === -1 ? messages : messages.slice(0, begins);
  const system = head.map((message) => textOf(message.parts)).join("\n\n");
  const sentAsText = new Set<string>();
  const out: { role: "user" | "assistant"; content: ContentBlock[] }[] = [];
  for (const message of messages.slice(head.length)) {
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = message.parts.flatMap((part) => toBlocks(part, sentAsText));
    // The API refuses empty turns, and a turn of reasoning alone is empty here.
    if (content.length === 0) continue;
    const last = out.at(-1);
    if (last?.role === role) last.content.push(...content);
    else out.push({ role, content });
  }
  return { system, messages: out };
}

export function toAnthropicTools(tools: Tool[]): Anthropic.Tool[] {
  return tools.map((tool) => ({
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    input_schema: { type: "object", ...schemaAsWritten(tool) } as Anthropic.Tool.InputSchema,
  }));
}

/** `unsaid` gathers the ids of calls that went out as text. */
function toBlocks(part: Part, sentAsText: Set<string>): ContentBlock[] {
  switch (part.type) {
    case "text":
      return part.text.trim() === "" ? [] : [{ type: "text", text: part.text }];
    case "image":
      return [toImage(part)];
    case "reasoning":
      return [];
    case "tool_call": {
      const input = part.kind === "custom" ? { input: part.arguments } : argumentsObject(part.arguments);
      if (input !== null) return [{ type: "tool_use", id: part.id, name: part.name, input }];
      sentAsText.add(part.id);
      return [{ type: "text", text: `${part.name}(${part.arguments})` }];
    }
    case "tool_result": {
      const content = part.content.flatMap(toShown);
      if (sentAsText.has(part.call_id)) return content;
      return [
        {
          type: "tool_result",
          tool_use_id: part.call_id,
          ...(content.length === 0 ? {} : { content }),
          ...(part.is_error ? { is_error: true } : {}),
        },
      ];
    }
  }
}

function toShown(part: TextLike): Shown[] {
  if (part.type === "image") return [toImage(part)];
  return part.text === "" ? [] : [{ type: "text", text: part.text }];
}

function toImage(part: ImageLike): Anthropic.ImageBlockParam {
  const url = imageUrl(part);
  const image = readImageUrl(url);
  if (image === null) return { type: "image", source: { type: "url", url } };
  const media_type = image.mediaType as Anthropic.Base64ImageSource["media_type"];
  return { type: "image", source: { type: "base64", media_type, data: image.base64 } };
}

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

type ImageLike = Extract<Part, { type: "image" }>;
type TextLike = Extract<Part, { type: "text" | "image" }>;
