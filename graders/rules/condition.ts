/** What a value that a work left, or an argument of a call, must be. */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { matches, Pattern } from "../bounded/matches.ts";
import type { LooseText } from "../grader.ts";

/**
 * An output that says everything has in it whatever is looked for. Honest ones are rarely longer than two pages, and all
 * numbers up to 10 000 are five times as long.
 */
export const usualLongest = 10_000;

export const Longest = z
  .number()
  .int()
  .positive()
  .optional()
  .describe(`characters of what \`contains\` and \`matches\` look into: what has more does not hold; left out: ${usualLongest}`);

const ways = {
  equals: z.unknown().optional().describe("the very value: of a file its text, of JSON the value, of a query its rows"),
  contains: z.string().min(1).optional().describe("a text that is in it"),
  matches: Pattern.optional().describe("a regular expression that finds something in it"),
  exists: z.boolean().optional().describe("whether it is there at all"),
};
export const conditionFields = { ...ways, longest: Longest };

const kinds = Object.keys(ways) as (keyof typeof ways)[];

export function hasOneCondition(value: object): boolean {
  return kinds.filter((kind) => Object.hasOwn(value, kind)).length === 1;
}

export const oneCondition = { error: `give one of ${kinds.join(", ")}` };

export const Condition = z.strictObject(conditionFields).refine(hasOneCondition, oneCondition);
export type Condition = z.infer<typeof Condition>;

/** null where the condition may look into the value. */
export function whyTooLong({ contains, matches: pattern, longest = usualLongest }: Condition, value: unknown): string | null {
  const isLoose = contains !== undefined || pattern !== undefined;
  const { length } = isLoose ? textOfValue(value) : "";
  return length <= longest ? null : `it has ${length} characters, and is looked into up to ${longest} (longest)`;
}

/** As `holdAtAnyLength`, and false for a value that is longer than `longest`. */
export async function hold(condition: Condition, values: readonly unknown[], signal: AbortSignal): Promise<(boolean | null)[]> {
  const held = values.map((value) => (whyTooLong(condition, value) === null ? value : undefined));
  return holdAtAnyLength(condition, held, signal);
}

/** For each value whether the condition holds; undefined: the value is not there. null where a pattern was not decided. */
export async function holdAtAnyLength(condition: Condition, values: readonly unknown[], signal: AbortSignal): Promise<(boolean | null)[]> {
  if (condition.exists !== undefined) return values.map((value) => (value !== undefined) === condition.exists);
  const { contains, matches: pattern } = condition;
  if (pattern !== undefined) {
    const found = await matches(pattern, values.map(textOfValue), signal);
    return found.map((one, index) => (values[index] === undefined ? false : one));
  }
  if (contains !== undefined) return values.map((value) => value !== undefined && textOfValue(value).includes(contains));
  return values.map((value) => value !== undefined && isDeepStrictEqual(value, condition.equals));
}

/** What the condition looks for inside of a value; [] where it compares the whole. `file`: where the value stands. */
export function looseTexts({ contains, matches: pattern, longest = usualLongest }: Condition, file: string | null): LooseText[] {
  const text = contains ?? pattern;
  return text === undefined ? [] : [{ text, isPattern: pattern !== undefined, longest, file }];
}

export function textOfValue(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** A place in a JSON value (RFC 6901), such as `/users/0/name`; the whole value is "". */
export const JsonPointer = z
  .string()
  .max(1_000)
  .regex(/^(?:\/(?:[^~]|~[01])*)?$/, "give a JSON pointer, such as /users/0/name");

/** The value at a place; undefined where there is none. */
export function valueAt(value: unknown, pointer: string): unknown {
  const keys = pointer.split("/").slice(1);
  return keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")).reduce<unknown>(memberOf, value);
}

function memberOf(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d{0,8})$/.test(key) ? value[Number(key)] : undefined;
  if (value === null || typeof value !== "object" || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}
