/** The text of a message, for chat templates that print one text for it. */
import type { Part, ToolResultPart } from "./message.ts";

/**
 * All texts of a message as one. Adjacent texts are joined with a newline, as vLLM does. Texts with a tool call between
 * them are joined without one, as they were sampled.
 */
export function joinedText(parts: readonly Part[]): string {
  let text = "";
  for (const [index, part] of parts.entries())
    if (part.type === "text") text += parts[index - 1]?.type === "text" ? `\n${part.text}` : part.text;
  return text;
}

/** A tool result's content. Chat templates have no field for an error, so a mark in front of the text says it. */
export function resultContent({ content, is_error }: ToolResultPart): ToolResultPart["content"] {
  if (!is_error) return content;
  const mark = "[tool error] ";
  const [first, ...rest] = content;
  if (first?.type === "text") return [{ ...first, text: mark + first.text }, ...rest];
  return [{ type: "text", text: mark }, ...content];
}
