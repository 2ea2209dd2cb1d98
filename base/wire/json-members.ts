/** The members of a JSON object as they are written: what is handed on is then the same byte for byte. */
import { endOfString, readExactly } from "../schema/exact-json.ts";

const mark = /["{}[\],]/g;

/**
 * Key -> text of its value. A key that stands there twice has its last value, as `JSON.parse` has it. Only for the text of
 * an object that `JSON.parse` has accepted: errors are not looked for.
 */
export function jsonMembers(text: string): Map<string, string> {
  const members = new Map<string, string>();
  for (let at = text.indexOf('"', text.indexOf("{")); at !== -1; ) {
    const keyEnd = endOfString(text, at);
    const valueStart = text.indexOf(":", keyEnd) + 1;
    const valueEnd = endOfValue(text, valueStart);
    members.set(readExactly(text.slice(at, keyEnd)) as string, text.slice(valueStart, valueEnd).trim());
    at = text[valueEnd] === "," ? text.indexOf('"', valueEnd) : -1;
  }
  return members;
}

/** The items of a JSON list as they are written. The same holds for the text. */
export function jsonItems(text: string): string[] {
  const items: string[] = [];
  for (let start = text.indexOf("[") + 1; ; ) {
    const end = endOfValue(text, start);
    const item = text.slice(start, end).trim();
    if (item !== "") items.push(item);
    if (text[end] !== ",") return items;
    start = end + 1;
  }
}

/** The comma or bracket behind the value that begins here. */
function endOfValue(text: string, from: number): number {
  mark.lastIndex = from;
  for (let depth = 0; ; ) {
    const at = mark.exec(text)?.index ?? text.length;
    const character = text[at];
    if (character === '"') mark.lastIndex = endOfString(text, at);
    else if (character === "{" || character === "[") depth++;
    else if (depth === 0 || character === undefined) return at;
    else if (character !== ",") depth--;
  }
}
