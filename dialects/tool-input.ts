/** Sampled arguments as the object that Messages and generateContent want, or null when they are none. */
import { areShallow } from "../schema/arguments.ts";
import { parseAsWritten } from "../wire/written-numbers.ts";
import { isObject } from "./edge.ts";

/**
 * Numbers that JavaScript would write in another way (1.0, 12345678901234567890) keep their text: the value is meant
 * for JSON.stringify. No arguments at all is how models call a tool that takes none.
 */
export function toolInput(rawArguments: string): Record<string, unknown> | null {
  if (rawArguments.trim() === "") return {};
  try {
    const value = parseAsWritten(rawArguments);
    return isObject(value) && areShallow(value) ? value : null;
  } catch {
    return null;
  }
}
