/** Reading what came over the wire: loose schemas, and faults that name the field as its sender would. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";

/** Schemas of single values, made once: a body may have a hundred thousand parts, and to make a schema takes longer than to read a part. */
export const AnyObject = z.looseObject({});
export const AnyText = z.string();
export const MaybeText = z.string().nullish();

/** The value as `schema` has it. `at` is the path of the value in the body, such as `messages[2].content`. */
export function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, at = ""): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const param = joinPath(at, issue?.path ?? []);
  throw invalid(param, (issue?.message ?? "invalid").replace(/^Invalid input: /, ""));
}

/** The request's fault at a field. */
export function invalid(param: string, message: string): AlidadeError {
  return new AlidadeError("request_invalid", param === "" ? `The request body: ${message}.` : `${param}: ${message}.`, {
    param: param || null,
  });
}

function joinPath(at: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (joined, key) => (typeof key === "number" ? `${joined}[${key}]` : joined ? `${joined}.${String(key)}` : String(key)),
    at,
  );
}

/** Without the entries that are null or undefined: many clients write null for what they do not set. */
export function present<Value extends Record<string, unknown>>(object: Value): { [Key in keyof Value]?: NonNullable<Value[Key]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== undefined)) as {
    [Key in keyof Value]?: NonNullable<Value[Key]>;
  };
}

/** The entries that are not in `keys`, null ones left out: what a dialect did not map. */
export function rest(object: Record<string, unknown>, keys: readonly string[]): Record<string, unknown> {
  return present(Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key))));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

export { JsonObject } from "../../base/schema/message.ts";
