import { readJson } from "../base/schema/read-json.ts";

/** What a person reads of a long error output; a harness may put a whole page into one line. */
const longestLine = 2000;

/** The last line that says something; null where none does. */
export function lastLine(text: string): string | null {
  return text.trim().split("\n").at(-1)?.trim().slice(0, longestLine) || null;
}

/** The last line that passes `wanted` and is a JSON object; null where there is none. Broken lines are passed over. */
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
