/** What parsing and labelling share about a generateContent request. */
import { isObject } from "../edge.ts";

/**
 * The object with its keys in camel case, one level deep: Google takes snake case too, and some of its SDKs send it.
 * Never for what is the model's or the tool's own (arguments, results, schemas' properties).
 */
export function camelKeys(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()), inner]),
  );
}

/** Names of the functions that a request declares. */
export function declaredFunctions(tools: unknown): string[] {
  const lists = (Array.isArray(tools) ? tools : []).map((tool: unknown) => (isObject(tool) ? camelKeys(tool).functionDeclarations : null));
  return lists.flatMap((list: unknown) =>
    Array.isArray(list) ? list.flatMap((one: unknown) => (isObject(one) ? [String(one.name)] : [])) : [],
  );
}

/** All text of a Content, or of what may stand for one: a string, or a list of parts. */
export function textOfContent(content: unknown): string {
  if (typeof content === "string") return content;
  const parts: unknown = isObject(content) ? content.parts : content;
  if (!Array.isArray(parts)) return "";
  return parts
    .map((part: unknown) => (typeof part === "string" ? part : isObject(part) && typeof part.text === "string" ? part.text : ""))
    .join("");
}
