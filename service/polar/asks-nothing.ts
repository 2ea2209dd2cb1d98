/** Fields of Polar's that this service has no use of: they may ask for nothing only. */
import { z } from "zod";

export const none = (why: string) => z.unknown().optional().refine(asksNothing, why);

/** Left out, switched off, or an object whose fields are so, such as `{version: ""}`. */
export function asksNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== "object" || value === null) return !value;
  return Object.values(value).every(asksNothing);
}
