/**
 * Numbers as they were written. JavaScript reads 1.0 as 1 and 12345678901234567890 as a neighbour of it, and writes those.
 * A number that is only handed on is kept as `JSON.rawJSON`, which JSON.stringify writes as it stands. Nothing else knows
 * what it is: such a value is for JSON.stringify alone. Tools' schemas are read by many, so they keep their values and have
 * their text beside them (base/wire/tool-schema.ts).
 */

import { withExactKeys } from "../schema/read-json.ts";

/** The value of a JSON text with its numbers as they were written, where JavaScript would write them in another way. */
export function parseAsWritten(text: string): unknown {
  const value = json.parse(text, (_key, inner, { source }) =>
    typeof inner === "number" && source !== undefined ? numberAsWritten(source) : inner,
  );
  return withExactKeys(text, value, numberAsWritten);
}

function numberAsWritten(source: string): unknown {
  const value = Number(source);
  return source === String(value) ? value : json.rawJSON(source);
}

/**
 * What may be such a number: -0, a fraction that ends in 0, an exponent, what JavaScript writes with one, and more
 * digits than a double surely keeps. It may stand within a string too, which costs no more than a second parse.
 */
const rewritten = /[[:,]\s*-?(?:\d+\.\d*0\s*[,}\]]|\d+(?:\.\d+)?[eE]|0\.0{6}|[\d.]{16})|-0\s*[,}\]]/;

/** May a text have such a number? */
export function mayHaveWrittenNumbers(text: string): boolean {
  return rewritten.test(text);
}

/** What of a body is only handed on: objects and lists under these keys, anywhere within this field of it. */
export type Verbatim = { field: string; keys: readonly string[] };

/** Keys under which the dialects have a tool's schema. An object of another kind under one of them loses nothing. */
const schemaKeys = ["parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema"];

/** What stood under these keys with such a number in it. */
const texts = new WeakMap<object, string>();

/**
 * Gives what is verbatim its numbers as they stand in `text`, of which `value` was parsed, and remembers the text of
 * tools' schemas; it may not nest deeply. All others stay numbers.
 */
export function restoreNumbers(value: unknown, text: string, { field, keys }: Verbatim): void {
  if (!mayHaveWrittenNumbers(text)) return;
  const written = parseAsWritten(text);
  rememberSchemas(value, written);
  const fieldOf = (body: unknown): unknown => (body as Record<string, unknown> | null)?.[field];
  takeOver(fieldOf(value), fieldOf(written), keys);
}

/** The text of a tool's schema as `restoreNumbers` met it, without its spaces, where JSON.stringify would write other numbers. */
export function writtenText(value: unknown): string | undefined {
  return value !== null && typeof value === "object" ? texts.get(value) : undefined;
}

function rememberSchemas(value: unknown, written: unknown): void {
  if (value === null || typeof value !== "object") return;
  for (const [key, inner] of Object.entries(value)) {
    const from = (written as Record<string, unknown>)[key];
    if (!schemaKeys.includes(key)) rememberSchemas(inner, from);
    else if (inner !== null && typeof inner === "object") {
      const text = JSON.stringify(from);
      if (text !== JSON.stringify(inner)) texts.set(inner, text);
    }
  }
}

function takeOver(value: unknown, written: unknown, keys: readonly string[]): void {
  if (value === null || typeof value !== "object") return;
  const [to, from] = [value as Record<string, unknown>, written as Record<string, unknown>];
  for (const key of Object.keys(to)) {
    if (!keys.includes(key)) takeOver(to[key], from[key], keys);
    else if (to[key] !== null && typeof to[key] === "object") to[key] = from[key];
  }
}

/** What the runtime has and the compiler's library does not know yet: ECMAScript's "JSON.parse source text access". */
const json = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
};
