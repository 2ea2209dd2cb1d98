/** The last line that passes `wanted` and is a JSON object; null where there is none. Broken lines are passed over. */
import { readJson } from "../base/schema/read-json.ts";
export function lastJsonLine(text: string, wanted: (line: string) => boolean): Record<string, unknown> | null {
  let end = text.length;
  while (end > 0) {
    const start = text.lastIndexOf("\n", end - 1) + 1;
    const line = text.slice(start, end);
    const value = wanted(line) ? parsed(line) : null;
    if (value !== null) return value;
    end = start - 1;
  }
  return null;
}

function parsed(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = readJson(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
