/** Patterns of calls of tools: by name, and by conditions on arguments. */
import { z } from "zod";
import { matchesAny } from "../../base/files/file-tree.ts";
import type { ToolCallPart } from "../../base/schema/message.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { Condition, hold, valueAt } from "./condition.ts";

export const ToolPattern = z.strictObject({
  tool: z
    .string()
    .min(1)
    .max(200)
    // Each star is one more loop over a name that a model made up.
    .regex(/^[^*]*(?:\*[^*]+){0,3}\*?$/, "give a name, or a glob with at most four stars")
    .describe("its name, or a glob such as mcp__*"),
  arguments: z.record(z.string(), Condition).default({}).describe("by name, or by a JSON pointer such as /items/0"),
});
export type ToolPattern = z.infer<typeof ToolPattern>;

export const Patterns = z.array(ToolPattern).max(100).default([]);

/** The fields of a call that a pattern reads. */
export type CalledTool = Pick<ToolCallPart, "name" | "arguments" | "kind">;

/** Says for each call whether it fits the pattern. null: unknown. */
export type Fits<Pattern> = (pattern: Pattern) => Promise<(boolean | null)[]>;

/** Returns the first tool of `order` that was not called after the one before it. null: the order holds. Other calls may stand between. */
export async function firstOutOfOrder<Pattern extends ToolPattern>(
  order: readonly Pattern[],
  fitsOf: Fits<Pattern>,
): Promise<string | null> {
  let from = 0;
  for (const pattern of order) {
    const found = (await fitsOf(pattern)).indexOf(true, from);
    if (found === -1) return pattern.tool;
    from = found + 1;
  }
  return null;
}

/** Says for each call whether it fits. null: a regular expression took too long. */
export async function fitting(
  { tool, arguments: wanted }: ToolPattern,
  calls: readonly CalledTool[],
  signal: AbortSignal,
  held: typeof hold = hold,
): Promise<(boolean | null)[]> {
  const globs = [tool.replaceAll("*", "**")];
  const fits: (boolean | null)[] = calls.map(({ name }) => name.length <= longestName && matchesAny(name, globs));
  for (const [place, condition] of Object.entries(wanted)) {
    const open = fits.flatMap((fit, index) => (fit === false ? [] : [index]));
    const values = open.map((index) => valueAt(argumentsOf(calls[index] as CalledTool), place.startsWith("/") ? place : `/${place}`));
    for (const [nth, fit] of (await held(condition, values, signal)).entries()) {
      const index = open[nth] as number;
      fits[index] = fit === false ? false : fit === null ? null : (fits[index] ?? null);
    }
  }
  return fits;
}

/** A model may invent any name; APIs allow 64 or 128 characters. */
const longestName = 200;

/** A text is the `input` of a freeform tool; what is no JSON is nothing that a condition can hold. */
function argumentsOf({ arguments: text, kind }: CalledTool): unknown {
  if (kind === "custom") return { input: text };
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}
