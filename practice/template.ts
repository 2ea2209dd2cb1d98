/**
 * The chat template: ChatML with Hermes tool calls. It is append-only: what a message prints depends on nothing after
 * it, so a conversation that grows keeps its text. System and developer turns stay where they are; tools are listed in
 * the first of them, or in one of their own.
 */
import { z } from "zod";
import { readJson } from "../base/schema/read-json.ts";
import { WireError } from "./wire-error.ts";

const Part = z.looseObject({ type: z.string(), text: z.string().optional() });
const Content = z.union([z.string(), z.array(Part)]).nullish();

export const ChatMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: Content,
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string().nullish() }) })).nullish(),
});
export type ChatMessage = z.infer<typeof ChatMessage>;

export const ChatTool = z.looseObject({
  type: z.string(),
  function: z.looseObject({ name: z.string(), parameters: z.unknown().optional() }),
});
export type ChatTool = z.infer<typeof ChatTool>;

/** The prompt as text. `generate` opens the assistant's turn at its end. */
export function renderChat(messages: readonly ChatMessage[], tools: readonly ChatTool[], generate = true): string {
  const first = messages[0];
  const opensWithRules = first?.role === "system" || first?.role === "developer";
  const listed = tools.length === 0 ? "" : toolList(tools);
  const head = opensWithRules ? turn(first.role, joined(textOf(first), listed)) : listed === "" ? "" : turn("system", listed);
  const rest = opensWithRules ? messages.slice(1) : messages;
  return head + rest.map(renderMessage).join("") + (generate ? "<|im_start|>assistant\n" : "");
}

function toolList(tools: readonly ChatTool[]): string {
  const lines = tools.map((tool) => JSON.stringify(tool)).join("\n");
  return `These functions can be called:\n<tools>\n${lines}\n</tools>\nA call is written as\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>`;
}

function renderMessage(message: ChatMessage): string {
  if (message.role === "tool") return turn("tool", `<tool_response>\n${textOf(message)}\n</tool_response>`);
  if (message.role !== "assistant") return turn(message.role, textOf(message));
  const reasoning = message.reasoning ?? message.reasoning_content;
  const thought = reasoning ? `<think>\n${reasoning}\n</think>\n\n` : "";
  return turn(
    "assistant",
    thought + [textOf(message), ...(message.tool_calls ?? []).map(renderCall)].filter((part) => part !== "").join("\n"),
  );
}

function renderCall(call: NonNullable<ChatMessage["tool_calls"]>[number]): string {
  return `<tool_call>\n{"name": ${JSON.stringify(call.function.name)}, "arguments": ${argumentsText(call.function.arguments ?? "{}")}}\n</tool_call>`;
}

/** The text as it was sent, spaces and all. Text that is a JSON string stands for what it holds, as in vLLM's templates. */
function argumentsText(text: string): string {
  try {
    const value: unknown = readJson(text);
    return typeof value === "string" ? value : text;
  } catch {
    return text;
  }
}

function turn(role: string, text: string): string {
  return `<|im_start|>${role}\n${text}<|im_end|>\n`;
}

function joined(...parts: string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Several texts as vLLM writes them for templates that want one. */
function textOf({ content }: ChatMessage): string {
  if (typeof content === "string") return content;
  return (content ?? [])
    .map((part) => {
      if (part.type === "image_url") return "<|vision_start|><|image_pad|><|vision_end|>";
      if (part.text === undefined)
        throw new WireError(400, `This model reads text and images; a message has a part of type "${part.type}".`, "messages");
      return part.text;
    })
    .join("\n");
}
