/** A tool call's arguments are the text that a model sampled: mostly JSON, and sometimes a thousand brackets. */
import { canonicalJson } from "./ids.ts";
import { nestsWithin } from "./json-depth.ts";
import { readJson } from "./read-json.ts";

/**
 * No tool needs deeper arguments. A request may nest 256 levels (base/wire/json.ts) and holds the calls of its history some
 * levels down. Deeper arguments could not come back in a request, and a recursive reader would overflow its stack.
 */
const maxDepth = 200;

/** The value that they are; undefined where they are no JSON, or nest too deeply for one. Never throws. */
export function parseArguments(raw: string): unknown {
  try {
    const value: unknown = readJson(raw);
    return areShallow(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The same where they are an object, as tools want them; else null. */
export function argumentsObject(raw: string): Record<string, unknown> | null {
  const value = parseArguments(raw);
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}

/** For callers with a parser of their own. */
export function areShallow(value: unknown): boolean {
  return nestsWithin(value, maxDepth);
}

/**
 * Equal values give equal text, whatever their spacing and the order of their keys; null where they are no value. None at
 * all is how models call a tool that takes none: wires and harnesses that want an object say that as an empty one.
 */
export function canonicalArguments(raw: string): string | null {
  const value = raw.trim() === "" ? {} : parseArguments(raw);
  return value === undefined ? null : canonicalJson(value);
}
