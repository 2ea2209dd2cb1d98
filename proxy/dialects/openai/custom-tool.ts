/**
 * Freeform tools: their input is text in no schema (Codex's `apply_patch`). Templates and engines know functions only,
 * so the model is shown a function with one string, `input`, and the string goes out again in the dialect's own form.
 */
import type { Tool } from "../../../base/schema/message.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import { isObject } from "../edge.ts";

export function customTool(name: string, description: string | undefined, format: unknown): Tool {
  const grammar = isObject(format) && isObject(format.grammar) ? format.grammar : format;
  const definition = isObject(grammar) && typeof grammar.definition === "string" ? grammar.definition : null;
  const syntax = isObject(grammar) && typeof grammar.syntax === "string" ? grammar.syntax : "grammar";
  return {
    name,
    ...(description !== undefined && { description }),
    parameters: {
      type: "object",
      properties: {
        // Without the grammar the model could not know what the text has to look like.
        input: { type: "string", ...(definition !== null && { description: `Text in this ${syntax} grammar:\n${definition}` }) },
      },
      required: ["input"],
    },
    kind: "custom",
  };
}

/** The text inside the sampled arguments; arguments of any other shape are the text themselves, so that nothing is lost. */
export function customInput(rawArguments: string): string {
  try {
    const value: unknown = readJson(rawArguments);
    return isObject(value) && typeof value.input === "string" ? value.input : rawArguments;
  } catch {
    return rawArguments;
  }
}
