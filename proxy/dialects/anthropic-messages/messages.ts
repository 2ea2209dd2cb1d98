/** The messages of a Messages request: blocks in order, tool results as messages of their own. */

import { z } from "zod";
import type { ContentPart, Message, Part } from "../../../base/schema/message.ts";
import { checked, invalid, isObject, MaybeText } from "../edge.ts";
import { hostedCall, hostedResult, shownValue } from "../left-out/hosted-history.ts";

const WireMessage = z.looseObject({ role: z.enum(["user", "assistant", "system"]) });
const WireBlock = z.looseObject({ type: z.string() });
type WireBlock = z.output<typeof WireBlock>;
const Text = z.looseObject({ text: z.string() });
const Thinking = z.looseObject({ thinking: z.string(), signature: z.string().nullish() });
const Redacted = z.looseObject({ data: z.string() });
const ToolUse = z.looseObject({ id: z.string(), name: z.string(), input: z.unknown() });
const ToolResult = z.looseObject({ tool_use_id: z.string(), is_error: z.boolean().nullish() });
const ToolReference = z.looseObject({ tool_name: z.string() });
const References = z
  .looseObject({ tool_references: z.array(ToolReference).nullish() })
  .nullish()
  .catch(null);
const Source = z.looseObject({ type: z.string() });
const Base64 = z.looseObject({ media_type: z.string(), data: z.string() });
const SearchResult = z.looseObject({ title: z.string(), source: z.string(), content: z.array(Text) });

export type ParsedMessages = {
  messages: Message[];
  /** Tools named by `tool_reference` results: from there on they are no longer deferred. */
  referenced: Set<string>;
};

export function parseMessages(values: unknown[]): ParsedMessages {
  const parsed: ParsedMessages = { messages: [], referenced: new Set() };
  for (const [index, value] of values.entries()) {
    const at = `messages[${index}]`;
    const message = checked(WireMessage, value, at);
    const blocks = blocksOf(message.content, `${at}.content`);
    if (message.role === "system") parsed.messages.push(...parseSystem(message.content, `${at}.content`));
    else if (message.role === "user") parsed.messages.push(...parseUser(blocks, `${at}.content`, parsed));
    else parsed.messages.push(...parseAssistant(blocks, `${at}.content`, parsed));
  }
  return parsed;
}

/**
 * A system prompt. Its blocks are sections, joined by an empty line into one text, so that a string and a list that
 * say the same are the same. Empty: no message.
 */
export function parseSystem(value: unknown, at: string): Message[] {
  if (value === null || value === undefined) return [];
  const texts = blocksOf(value, at).map((block, index) => {
    if (block.type !== "text") throw invalid(`${at}[${index}].type`, `only text is supported here, not "${block.type}"`);
    return withoutBillingHeader(checked(Text, block, `${at}[${index}]`).text);
  });
  const text = texts.filter((one) => one !== "").join("\n\n");
  return text === "" ? [] : [{ role: "system", parts: [{ type: "text", text }] }];
}

/**
 * Claude Code's first system block is a line for the vendor's billing, with a hash that differs between conversations
 * (and after a compaction). It says nothing to a model, and at the head of the prompt it would make every prefix new.
 */
function withoutBillingHeader(text: string): string {
  return text.replace(/^x-anthropic-billing-header:[^\n]*\n*/i, "");
}

function blocksOf(content: unknown, at: string): WireBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content))
    throw invalid(at, `expected a string or a list of blocks, received ${content === null ? "null" : typeof content}`);
  return content.map((block: unknown, index) => checked(WireBlock, block, `${at}[${index}]`));
}

/** A user message may hold several tool results and then text: each result is a message, the rest stays around it in order. */
function parseUser(blocks: WireBlock[], at: string, parsed: ParsedMessages): Message[] {
  const messages: Message[] = [];
  let parts: Part[] = [];
  const flush = (): void => {
    if (parts.length > 0) messages.push({ role: "user", parts });
    parts = [];
  };
  for (const [index, block] of blocks.entries()) {
    if (block.type !== "tool_result") {
      parts.push(...parseContentBlock(block, `${at}[${index}]`, parsed));
      continue;
    }
    flush();
    messages.push(parseResult(block, `${at}[${index}]`, parsed));
  }
  flush();
  return messages.length > 0 ? messages : [{ role: "user", parts: [] }];
}

function parseResult(block: WireBlock, at: string, parsed: ParsedMessages): Message {
  const result = checked(ToolResult, block, at);
  const blocks = result.content === null || result.content === undefined ? [] : blocksOf(result.content, `${at}.content`);
  const content = blocks.flatMap((inner, index) => parseContentBlock(inner, `${at}.content[${index}]`, parsed));
  return { role: "tool", parts: [{ type: "tool_result", call_id: result.tool_use_id, content, is_error: result.is_error ?? false }] };
}

function parseContentBlock(block: WireBlock, at: string, parsed: ParsedMessages): ContentPart[] {
  switch (block.type) {
    case "text":
      return textParts(checked(Text, block, at).text);
    case "image":
      return [{ type: "image", url: imageUrl(block.source, `${at}.source`) }];
    case "document":
      return parseDocument(block, at, parsed);
    case "search_result": {
      const found = checked(SearchResult, block, at);
      return textParts([found.title, found.source, ...found.content.map((part) => part.text)].join("\n"));
    }
    case "tool_reference": {
      const { tool_name } = checked(ToolReference, block, at);
      parsed.referenced.add(tool_name);
      return textParts(tool_name);
    }
    default:
      throw invalid(
        `${at}.type`,
        `blocks of type "${block.type}" are not supported here; text, image, document, search_result and tool_result are`,
      );
  }
}

/** What the vendor's own tools brought stands between the blocks: a message of a result, with the turn on both sides of it. */
function parseAssistant(blocks: WireBlock[], at: string, parsed: ParsedMessages): Message[] {
  const messages: Message[] = [];
  let parts: Part[] = [];
  const flush = (): void => {
    if (parts.length > 0) messages.push({ role: "assistant", parts });
    parts = [];
  };
  for (const [index, block] of blocks.entries()) {
    if (!block.type.endsWith("_tool_result")) parts.push(...parseAssistantBlock(block, `${at}[${index}]`));
    else {
      flush();
      messages.push(parseHostedResult(block, `${at}[${index}]`, parsed));
    }
  }
  flush();
  return messages.length > 0 ? messages : [{ role: "assistant", parts: [] }];
}

function parseHostedResult(block: WireBlock, at: string, parsed: ParsedMessages): Message {
  const { tool_use_id, is_error } = checked(ToolResult, block, at);
  const { content } = block;
  for (const { tool_name } of checked(References, content, `${at}.content`)?.tool_references ?? []) parsed.referenced.add(tool_name);
  const isShown = typeof content === "string" || (block.type === "mcp_tool_result" && Array.isArray(content));
  const parts = isShown
    ? blocksOf(content, `${at}.content`).flatMap((inner, index) => parseContentBlock(inner, `${at}.content[${index}]`, parsed))
    : shownValue(content);
  const failed = is_error ?? (isObject(content) && typeof content.error_code === "string");
  return hostedResult(tool_use_id, parts, failed);
}

function parseAssistantBlock(block: WireBlock, at: string): Part[] {
  switch (block.type) {
    case "text":
      return textParts(checked(Text, block, at).text);
    case "thinking": {
      const thinking = checked(Thinking, block, at);
      return [{ type: "reasoning", text: thinking.thinking, ...(thinking.signature && { carrier: thinking.signature }) }];
    }
    case "redacted_thinking":
      return [{ type: "reasoning", text: "", carrier: checked(Redacted, block, at).data }];
    case "tool_use": {
      const call = checked(ToolUse, block, at);
      // The text that was sampled is lost on this wire; restore finds it again by the id.
      return [{ type: "tool_call", id: call.id, name: call.name, arguments: JSON.stringify(call.input ?? {}), kind: "function" }];
    }
    case "server_tool_use":
    case "mcp_tool_use": {
      const call = checked(ToolUse, block, at);
      const server = typeof block.server_name === "string" ? `${block.server_name}__` : "";
      return [hostedCall(call.id, `${server}${call.name}`, call.input)];
    }
    // What the vendor made of the conversation before it, where it compacted that.
    case "compaction":
      return textParts(checked(MaybeText, block.content, `${at}.content`) ?? "");
    default:
      throw invalid(`${at}.type`, `blocks of type "${block.type}" are not supported here, and no part of a conversation is left out of it`);
  }
}

function parseDocument(block: WireBlock, at: string, parsed: ParsedMessages): ContentPart[] {
  const source = checked(Source, block.source, `${at}.source`);
  const title = [block.title, block.context].flatMap((text) => (typeof text === "string" && text !== "" ? textParts(`${text}\n`) : []));
  if (source.type === "text") return [...title, ...textParts(checked(Base64, source, `${at}.source`).data)];
  if (source.type === "content") {
    const blocks = blocksOf(source.content, `${at}.source.content`);
    return [...title, ...blocks.flatMap((inner, index) => parseContentBlock(inner, `${at}.source.content[${index}]`, parsed))];
  }
  // A PDF's pages would have to be read or drawn first, and what the model then saw would be ours and not the record's.
  const kind = typeof source.media_type === "string" ? `${source.media_type} (${source.type})` : `"${source.type}"`;
  throw invalid(`${at}.source.type`, `documents of type ${kind} are not supported; send the text itself, as type text or content`);
}

function imageUrl(value: unknown, at: string): string {
  const source = checked(Source, value, at);
  if (source.type === "base64") {
    const image = checked(Base64, source, at);
    return `data:${image.media_type};base64,${image.data}`;
  }
  if (source.type === "url" && isObject(value) && typeof value.url === "string") return value.url;
  throw invalid(`${at}.type`, `images of type "${source.type}" are not supported; base64 and url are`);
}

/** Empty text is no part. */
function textParts(text: string): ContentPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}
