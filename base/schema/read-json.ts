/**
 * `JSON.parse` for all text from outside. The runtime's own parser confuses keys: once an object with the key `\` was read
 * anywhere in the process, it may read the keys `"\n"` and `"\""` of another text as `\`
 * (https://github.com/nodejs/node/issues/63785, in Node 24 and 26). Only a key with an escape is read wrong, and the wrong key
 * always holds a backslash. So where a text has the one and its value the other, it is read again, key by key.
 */
import { endOfString, readExactly } from "./exact-json.ts";

/** The value of a JSON text. Throws SyntaxError. */
export function readJson(text: string): unknown {
  return withExactKeys(text, JSON.parse(text));
}

/** undefined: the text is no JSON. */
export function tryJson(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}

/** `value` is what the runtime's parser made of `text`. `numberOf`: what it made of each number. */
export function withExactKeys(text: string, value: unknown, numberOf?: (source: string) => unknown): unknown {
  return hasEscapedKey(text) && hasBackslashKey(value) ? readExactly(text, numberOf) : value;
}

/** Looks at strings with an escape alone: an engine's answer with logprobs has thousands of objects and few of those. */
function hasEscapedKey(text: string): boolean {
  const colon = /\s*:/y;
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", colon.lastIndex)) {
    // A backslash stands in a string only: the search for its end begins at this escape.
    const end = endOfString(text, at - 1);
    colon.lastIndex = end;
    if (colon.test(text)) return true;
    colon.lastIndex = end;
  }
  return false;
}

function hasBackslashKey(value: unknown): boolean {
  const left: unknown[] = [value];
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    if (item === null || typeof item !== "object") continue;
    if (Array.isArray(item)) for (const child of item) isNested(child) && left.push(child);
    else
      for (const [key, child] of Object.entries(item)) {
        if (key.includes("\\")) return true;
        if (isNested(child)) left.push(child);
      }
  }
  return false;
}

function isNested(value: unknown): boolean {
  return value !== null && typeof value === "object";
}
