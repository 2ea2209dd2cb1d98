/** Sampled arguments as the object that Messages and generateContent want, or null when they are none. */
import { areShallow } from "../../base/schema/arguments.ts";
import { parseAsWritten } from "../../base/wire/written-numbers.ts";
import { isObject } from "./edge.ts";

/**
 * Numbers that JavaScript would write in another way (1.0, 12345678901234567890) keep their text, so the value is only for
 * JSON.stringify. An empty text is a call without arguments.
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
