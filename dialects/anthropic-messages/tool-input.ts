/** Sampled arguments as the object that Messages wants, or null when they are none. */
import { isObject } from "../edge.ts";

/**
 * Numbers that JavaScript would write in another way (1.0, 12345678901234567890) keep their text: the value is meant
 * for JSON.stringify. No arguments at all is how models call a tool that takes none.
 */
export function toolInput(rawArguments: string): Record<string, unknown> | null {
  if (rawArguments.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(rawArguments, (_key, inner: unknown, context: { source?: string }) =>
      typeof inner === "number" && context.source !== undefined && context.source !== String(inner) ? rawJson(context.source) : inner,
    );
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function rawJson(source: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(source);
}
