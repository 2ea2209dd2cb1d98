/** The form that a request asks its answer to have: a tool choice, a response format, or vLLM's `structured_outputs`. */

import type { ChatRequest, CompletionRequest } from "../requests.ts";
import type { ChatTool } from "../template.ts";
import { WireError } from "../wire-error.ts";
import type { TextForm } from "./form.ts";
import { anyObject, schemaForm } from "./schema-form.ts";

type Asked = Pick<CompletionRequest, "response_format" | "structured_outputs"> & Partial<Pick<ChatRequest, "tool_choice" | "tools">>;

/** null: the answer is free. Throws WireError 400 for what cannot be held. */
export function askedForm(request: Asked): TextForm | null {
  const called = calledForm(request);
  if (called) return called;
  const { response_format: format, structured_outputs: outputs } = request;
  if (outputs?.json != null) return schemaForm(outputs.json, "structured_outputs.json");
  if (format?.type === "json_object") return anyObject;
  if (format?.type === "json_schema") return schemaForm(format.json_schema.schema ?? {}, "response_format.json_schema.schema");
  return null;
}

function calledForm({ tool_choice: choice, tools }: Asked): TextForm | null {
  if (choice == null || choice === "none" || choice === "auto") return null;
  const named = typeof choice === "string" ? null : choice.function.name;
  const chosen = (tools ?? []).filter((tool) => named === null || tool.function.name === named);
  if (chosen.length === 0)
    throw new WireError(
      400,
      named === null ? "tool_choice is required, and there are no tools" : `tool_choice names ${named}, which is no tool of the request`,
      "tool_choice",
    );
  return { any: chosen.map(callOf) };
}

/** As the template writes a call. */
function callOf({ function: { name, parameters } }: ChatTool): TextForm {
  const head = `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `;
  return { each: [{ text: head }, schemaForm(parameters ?? { type: "object" }, `tools.${name}.parameters`), { text: "}\n</tool_call>" }] };
}
