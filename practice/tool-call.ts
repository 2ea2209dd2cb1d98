/** One Hermes tool call: the JSON between `<tool_call>` and `</tool_call>`. */
import { z } from "zod";
import { tryJson } from "../base/schema/read-json.ts";

const Call = z.looseObject({ name: z.string().min(1), arguments: z.unknown() });

/**
 * Name and raw arguments of a call, or null where the text is none. The arguments are cut out of the text and not
 * written anew: spacing, key order and escapes are the model's.
 */
export function readToolCall(text: string): { name: string; arguments: string } | null {
  const call = Call.safeParse(tryJson(text));
  const raw = rawValues(text).get("arguments");
  return call.success && raw !== undefined ? { name: call.data.name, arguments: raw } : null;
}

/** The values of an object's own keys as they are written. The text must be valid JSON; anything else gives nonsense. */
function rawValues(text: string): Map<string, string> {
  const values = new Map<string, string>();
  let depth = 0;
  let key: string | null = null;
  let start = 0;
  for (const { 0: piece, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/gs)) {
    if (depth === 1 && (piece === "," || piece === "}") && key !== null) {
      values.set(key, text.slice(start, index).trim());
      key = null;
    } else if (depth === 1 && piece === ":" && key !== null) start = index + 1;
    else if (depth === 1 && key === null && piece.startsWith('"')) key = String(tryJson(piece));
    if (piece === "{" || piece === "[") depth += 1;
    if (piece === "}" || piece === "]") depth -= 1;
  }
  return values;
}
