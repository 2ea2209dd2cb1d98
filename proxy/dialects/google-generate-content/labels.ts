/** Gemini CLI says nothing of agents in its headers: its sub-agents and side calls are known by what they ask. */
import type { RequestClass } from "../../../base/schema/session-spec.ts";
import type { CallLabels, Headers } from "../dialect.ts";
import { isObject } from "../edge.ts";
import { callLabels, classOfSystemPrompt } from "../request-labels.ts";
import { camelKeys, declaredFunctions, textOfContent } from "./wire.ts";

export function labelsOfGenerateContent(headers: Headers, body: Record<string, unknown>): CallLabels {
  const request = camelKeys(body);
  const requestClass = classOf(headers, request);
  // Sub-agents have no id on the wire: they share one name, and their lineage separates them.
  return callLabels(requestClass === "sub_agent" ? "sub_agent" : "main", requestClass, headers, body);
}

function classOf(headers: Headers, request: Record<string, unknown>): RequestClass {
  const tools = declaredFunctions(request.tools);
  const side = tools.length > 0 ? null : classOfSystemPrompt(textOfContent(request.systemInstruction));
  if (side !== null) return side;
  if (!headers["user-agent"]?.startsWith("GeminiCLI")) return "main";
  // It streams its own turns; whole answers of a given form are its questions about the run (is it going in circles?).
  if (request.stream !== true && answersInSchema(request.generationConfig)) return "check";
  return tools.includes("complete_task") && !tools.includes("invoke_agent") ? "sub_agent" : "main";
}

function answersInSchema(config: unknown): boolean {
  const { responseJsonSchema, responseSchema } = isObject(config) ? camelKeys(config) : {};
  return isObject(responseJsonSchema) || isObject(responseSchema);
}
