/**
 * `JSON.parse` for all text from outside. The runtime's own parser confuses keys: once an object with the key `\` was read
 * anywhere in the process, it may read the keys `"\n"` and `"\""` of another text as `\`
 * (https://github.com/nodejs/node/issues/63785, in Node 24 and 26). The wrong key always holds a backslash. So a value with
 * such a key is read again, key by key.
 */
import { readExactly } from "./exact-json.ts";

/** The value of a JSON text. Throws SyntaxError. */
export function readJson(text: string): unknown {
  return withExactKeys(text, JSON.parse(text));
}

/** `value` is what the runtime's parser made of `text`. `numberOf`: what it made of each number. */
export function withExactKeys(text: string, value: unknown, numberOf?: (source: string) => unknown): unknown {
  return text.includes("\\") && hasBackslashKey(value) ? readExactly(text, numberOf) : value;
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
