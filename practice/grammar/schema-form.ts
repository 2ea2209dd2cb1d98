/**
 * JSON Schema, the part that SDKs write for structured answers and tools, as a form of compact JSON. Properties come in
 * the schema's order, all of them; sizes are bounded, so that random weights end too. A keyword that would bind the
 * value and is not understood is refused, because ignoring it would be a wrong answer.
 */
import { z } from "zod";
import { WireError } from "../wire-error.ts";
import type { TextForm } from "./form.ts";

/** Characters of a string, items of a list, and members of an object that the schema leaves open. */
const longest = { string: 24, list: 3, object: 2 };
/** A form has a state for each character that it may have. */
const mostAsked = 1_000;
/** Schemas within schemas; one that contains itself is deeper. */
const deepest = 16;

type Schema = Readonly<Record<string, unknown>>;
/** Taken as it is: a copy would lose a property that is called `__proto__`. */
const Schema = z.custom<Schema>((value) => typeof value === "object" && value !== null && !Array.isArray(value));
/** A bound that is not there binds nothing. */
const SizeBounds = z.looseObject({
  minimum: z.number().default(Number.NEGATIVE_INFINITY),
  maximum: z.number().default(Number.POSITIVE_INFINITY),
  minLength: z.int().min(0).default(0),
  maxLength: z.int().min(0).default(Number.MAX_SAFE_INTEGER),
  minItems: z.int().min(0).default(0),
  maxItems: z.int().min(0).default(Number.MAX_SAFE_INTEGER),
});
type SizeBounds = z.infer<typeof SizeBounds>;

/** They describe a value and do not bind it. */
const notes = new Set(["$schema", "$id", "$defs", "definitions", "title", "description", "default", "examples", "deprecated", "strict"]);
const understood = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "$ref",
  ...Object.keys(SizeBounds.shape),
]);

const digit = { one: "0123456789" };
/** Integers of the form lie within it. */
const largest = 999_999;
const natural: TextForm = { any: [{ text: "0" }, { each: [{ one: "123456789" }, { repeat: digit, from: 0, to: 5 }] }] };
const integer: TextForm = { each: [{ repeat: { text: "-" }, from: 0, to: 1 }, natural] };
const fraction: TextForm = { each: [{ text: "." }, { repeat: digit, from: 1, to: 4 }] };
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;!?'()[]{}<>/=+-*_#@%&|$^~`";
const scalars = {
  string: stringOf(0, longest.string),
  integer,
  number: { each: [integer, { repeat: fraction, from: 0, to: 1 }] },
  boolean: { any: [{ text: "true" }, { text: "false" }] },
  null: { text: "null" },
} satisfies Record<string, TextForm>;
const scalar: TextForm = { any: Object.values(scalars) };
const key: TextForm = { each: [{ text: '"' }, { repeat: { one: "abcdefghijklmnopqrstuvwxyz_" }, from: 1, to: 8 }, { text: '"' }] };

/** `{"type": "json_object"}`: an object of scalars. */
export const anyObject: TextForm = { each: [{ text: "{" }, listOf({ each: [key, { text: ":" }, scalar] }, longest.object), { text: "}" }] };
const anyList: TextForm = { each: [{ text: "[" }, listOf(scalar, longest.list), { text: "]" }] };

/** Throws WireError 400 that names `field` and what is not understood there. */
export function schemaForm(schema: unknown, field: string): TextForm {
  return formOf(schema, { root: schema, field, depth: 0 });
}

type SchemaPlace = { root: unknown; field: string; depth: number };

function formOf(given: unknown, place: SchemaPlace): TextForm {
  if (place.depth > deepest) throw refusal(place, `schemas are nested more than ${deepest} deep, or one contains itself`);
  if (given === true) return { any: [scalar, anyObject, anyList] };
  const parsed = Schema.safeParse(given);
  if (!parsed.success) throw refusal(place, "a schema is an object");
  const schema = parsed.data;
  const unknown = Object.keys(schema).find((name) => !notes.has(name) && !understood.has(name));
  if (unknown !== undefined) throw refusal(place, `the practice engine does not know the keyword ${unknown}`);
  const inner = { ...place, depth: place.depth + 1 };
  if (schema.$ref !== undefined) return formOf(referred(schema.$ref, place), inner);
  if (schema.const !== undefined) return { text: JSON.stringify(schema.const) };
  if (Array.isArray(schema.enum)) return { any: schema.enum.map((value) => ({ text: JSON.stringify(value) })) };
  const either = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(either)) return { any: either.map((one) => formOf(one, inner)) };
  if (Array.isArray(schema.type)) return { any: schema.type.map((type) => typed({ ...schema, type }, inner)) };
  return typed(schema, inner);
}

function typed(schema: Schema, place: SchemaPlace): TextForm {
  const { type } = schema;
  const bounds = SizeBounds.safeParse(schema);
  if (!bounds.success) throw refusal(place, "a bound is no number");
  const { minLength, maxLength, minItems, maxItems } = bounds.data;
  if (type === "integer" || type === "number") return numberOf(type, bounds.data, place);
  if (type === "string") return stringOf(minLength, sized(minLength, maxLength, longest.string, place));
  if (type === "array") {
    const item = formOf(schema.items ?? true, place);
    return { each: [{ text: "[" }, listOf(item, sized(minItems, maxItems, longest.list, place), minItems), { text: "]" }] };
  }
  if (type === "object" || (type === undefined && schema.properties !== undefined)) return object(schema, place);
  if (type === undefined) return { any: [scalar, anyObject, anyList] };
  if (typeof type === "string" && Object.hasOwn(scalars, type)) return scalars[type as keyof typeof scalars];
  throw refusal(place, `the type ${JSON.stringify(type)} is not known`);
}

function object(schema: Schema, place: SchemaPlace): TextForm {
  const properties = Schema.safeParse(schema.properties ?? {});
  if (!properties.success) throw refusal(place, "properties is an object of schemas");
  const members = Object.entries(properties.data);
  if (members.length === 0) return schema.additionalProperties === false ? { text: "{}" } : anyObject;
  const parts = members.map(([name, value]) => ({ each: [{ text: `${JSON.stringify(name)}:` }, formOf(value, place)] }));
  return { each: [{ text: "{" }, ...parts.flatMap((part, at) => (at === 0 ? [part] : [{ text: "," }, part])), { text: "}" }] };
}

/** From `least` to `most` items; none at all where `least` is 0. */
function listOf(item: TextForm, most: number, least = 0): TextForm {
  if (most === 0) return { text: "" };
  const more: TextForm = { repeat: { each: [{ text: "," }, item] }, from: Math.max(0, least - 1), to: most - 1 };
  return { repeat: { each: [item, more] }, from: Math.min(1, least), to: 1 };
}

function stringOf(least: number, most: number): TextForm {
  return { each: [{ text: '"' }, { repeat: { one: letters }, from: least, to: most }, { text: '"' }] };
}

/** The most that the form has: what is usual, more where the schema asks for more, less where it allows no more. */
function sized(least: number, most: number, usual: number, place: SchemaPlace): number {
  if (least > mostAsked) throw refusal(place, `${least} is more than the practice engine makes (${mostAsked})`);
  if (least > most) throw refusal(place, `nothing has from ${least} to ${most}`);
  return Math.min(most, Math.max(least, usual));
}

function numberOf(type: "integer" | "number", { minimum, maximum }: SizeBounds, place: SchemaPlace): TextForm {
  if (minimum <= -largest - 1 && maximum >= largest + 1) return scalars[type];
  const first = Math.ceil(minimum);
  const count = Math.floor(maximum) - first + 1;
  if (count > 0 && count <= mostAsked) return { any: Array.from({ length: count }, (_, at) => ({ text: String(first + at) })) };
  if (minimum <= 0 && minimum > -1 && maximum >= largest + 1)
    return type === "integer" ? natural : { each: [natural, { repeat: fraction, from: 0, to: 1 }] };
  throw refusal(place, `the practice engine makes no ${type} from ${minimum} to ${maximum}`);
}

/** `#/$defs/Name`, as pydantic and zod write it. */
function referred(ref: unknown, place: SchemaPlace): unknown {
  let found: unknown = place.root;
  for (const name of String(ref).split("/").slice(1)) {
    const known = Schema.safeParse(found);
    found = known.success && Object.hasOwn(known.data, name) ? known.data[name] : undefined;
  }
  if (typeof ref !== "string" || !ref.startsWith("#") || found === undefined)
    throw refusal(place, `${JSON.stringify(ref)} is not in the schema`);
  return found;
}

function refusal({ field }: SchemaPlace, why: string): WireError {
  return new WireError(400, `Invalid ${field}: ${why}`, field);
}
