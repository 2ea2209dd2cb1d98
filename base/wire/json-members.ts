/** Reads the text of each member of a JSON object, so that a value can be passed on byte for byte. */
import { endOfString, readExactly } from "../schema/exact-json.ts";

const mark = /["{}[\],]/g;

/**
 * Returns the text of each value by its key. Of a key that occurs twice the last value counts, as in `JSON.parse`. Only for
 * the text of an object that `JSON.parse` has accepted: this function finds no errors.
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

/** Returns the text of each item of a JSON list. Only for the text of a list that `JSON.parse` has accepted. */
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
