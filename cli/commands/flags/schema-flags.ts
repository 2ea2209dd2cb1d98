/** Flags that are made of a schema: its field is the name, the description and the choices. */
import { Option } from "commander";
import { z } from "zod";
import { toNumber } from "../command-line.ts";

const FieldSchema = z.looseObject({
  type: z.string().optional(),
  description: z.string().default(""),
  default: z.unknown().optional(),
  enum: z.array(z.string()).optional(),
  anyOf: z.array(z.looseObject({ type: z.string().optional() })).optional(),
});

export type FieldFlag = { type: string; description: string; values: string[] | null };

/** null: one flag cannot hold the field's value, for it is a list or an object. `preset` instead of the field's own default. */
export function describeField(field: z.core.$ZodType, preset?: unknown): FieldFlag | null {
  const { type, description, enum: values, anyOf = [], default: own } = FieldSchema.parse(z.toJSONSchema(field, { io: "input" }));
  const [alone, ...more] = [type, ...anyOf.map((one) => one.type)].filter((one) => one !== undefined && one !== "null");
  if (alone === undefined || more.length > 0 || !["string", "number", "integer", "boolean"].includes(alone)) return null;
  const given = preset ?? own ?? false;
  return { type: alone, description: `${description}${given === false ? "" : `; default ${String(given)}`}`, values: values ?? null };
}

/** A key of the configuration as a flag: the configuration itself refuses a wrong value, so here the choices only stand in the help. */
export function flagOf(key: string, field: z.core.$ZodType, preset?: unknown): Option | null {
  const found = describeField(field, preset);
  if (found === null) return null;
  const option = toFlag(key, { ...found, values: null });
  if (found.values !== null) option.argChoices = found.values;
  return found.type === "number" || found.type === "integer" ? option.argParser(toNumber) : option;
}

export function toFlag(key: string, { type, description, values }: FieldFlag): Option {
  const option = new Option(`--${key.replaceAll("_", "-")}${type === "boolean" ? "" : ` <${type}>`}`, description);
  return values === null ? option : option.choices(values);
}

/** The name under which commander hands the flag's value on. */
export function flagKey(key: string): string {
  return key.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
