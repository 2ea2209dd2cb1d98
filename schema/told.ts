/** What a model is told of a message that its template has one place of text for. */
import type { Part, ToolResultPart } from "./message.ts";

/**
 * The texts of a message as one: those that follow each other on lines of their own, as vLLM joins a list of them; those
 * of a turn that has a call between them as they were sampled, without a break.
 */
export function toldText(parts: readonly Part[]): string {
  let text = "";
  for (const [index, part] of parts.entries())
    if (part.type === "text") text += parts[index - 1]?.type === "text" ? `\n${part.text}` : part.text;
  return text;
}

/** An error has no slot in chat templates, so it is said in front of the text. */
export function toldResult({ content, is_error }: ToolResultPart): ToolResultPart["content"] {
  if (!is_error) return content;
  const mark = "[tool error] ";
  const [first, ...rest] = content;
  if (first?.type === "text") return [{ ...first, text: mark + first.text }, ...rest];
  return [{ type: "text", text: mark }, ...content];
}
