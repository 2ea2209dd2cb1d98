/** Google's Schema (an OpenAPI dialect, types in upper case) as the JSON Schema that models are trained on and engines take. */
import { isObject } from "../edge.ts";
import { camelKeys } from "./wire.ts";

type JsonSchema = Record<string, unknown>;

/** 64-bit limits, which Google's JSON writes as strings. */
const limits = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/** Keys that JSON Schema lacks, or that Google writes in another way. */
const replaced = ["type", "nullable", "propertyOrdering", ...limits];

export function toJsonSchema(value: unknown): JsonSchema {
  if (!isObject(value)) return {};
  const schema = camelKeys(value);
  const out: JsonSchema = { ...typed(schema), ...Object.fromEntries(Object.entries(schema).filter(([key]) => !replaced.includes(key))) };
  for (const key of limits) if (schema[key] !== undefined && schema[key] !== null) out[key] = Number(schema[key]);
  if (out.format === "enum") delete out.format;
  if (schema.nullable === true && Array.isArray(schema.enum) && !schema.enum.includes(null)) out.enum = [...schema.enum, null];
  if (isObject(schema.properties)) out.properties = properties(schema.properties, schema.propertyOrdering);
  for (const key of ["items", "additionalProperties", "not"]) if (isObject(schema[key])) out[key] = toJsonSchema(schema[key]);
  for (const key of ["anyOf", "oneOf", "allOf", "prefixItems"])
    if (Array.isArray(schema[key])) out[key] = (schema[key] as unknown[]).map(toJsonSchema);
  if (schema.nullable === true && out.type === undefined && Array.isArray(out.anyOf))
    out.anyOf = [...(out.anyOf as unknown[]), { type: "null" }];
  return out;
}

function typed({ type, nullable }: JsonSchema): JsonSchema {
  const names = (Array.isArray(type) ? type : [type])
    .filter((one) => typeof one === "string" && one !== "TYPE_UNSPECIFIED")
    .map((one) => String(one).toLowerCase());
  if (nullable === true && names.length > 0 && !names.includes("null")) names.push("null");
  return names.length === 0 ? {} : { type: names.length === 1 ? names[0] : names };
}

/** In the requested order, because a model writes properties in this order. */
function properties(schemas: JsonSchema, ordering: unknown): JsonSchema {
  const first = Array.isArray(ordering)
    ? ordering.filter((name): name is string => typeof name === "string" && Object.hasOwn(schemas, name))
    : [];
  const names = [...new Set([...first, ...Object.keys(schemas)])];
  return Object.fromEntries(names.map((name) => [name, toJsonSchema(schemas[name])]));
}
