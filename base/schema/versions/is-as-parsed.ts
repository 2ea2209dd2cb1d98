/**
 * Tells fast whether a schema would leave a value as it is. Our own records mostly are: for them this takes a third of the
 * schema's time or less, and makes no copy.
 *
 *     const isPlain = isAsParsed(Trajectory);
 *     const trajectory = isPlain(value) ? value : Trajectory.parse(value);
 *
 * true: the schema would return an equal value, perhaps with keys in another order. false: ask the schema, which may also accept it:
 * it fills in defaults, reads older versions and names what is wrong. `value` must come from `JSON.parse`.
 */
import { z } from "zod";

type Test = (value: unknown) => boolean;

export function isAsParsed<Schema extends z.core.$ZodType>(schema: Schema): (value: unknown) => value is z.output<Schema> {
  const test = testOf(schema);
  return (value): value is z.output<Schema> => test(value);
}

/** What has no rule here is asked of the schema itself. */
function testOf(schema: z.core.$ZodType): Test {
  const { checks = [] } = schema._zod.def;
  if (schema instanceof z.ZodNumber) return numberTest(schema);
  const rule = ruleOf(schema);
  const isChanged = checks.some((check) => check._zod.def.check === "overwrite");
  if (rule === null || isChanged) return sameByParsing(schema);
  return checks.length === 0 ? rule : (value) => rule(value) && z.safeParse(schema, value).success;
}

function ruleOf(schema: z.core.$ZodType): Test | null {
  if (schema instanceof z.ZodString) return isPlainString(schema) ? isString : null;
  if (schema instanceof z.ZodBoolean) return schema.def.coerce ? null : isBoolean;
  if (schema instanceof z.ZodUnknown) return () => true;
  if (schema instanceof z.ZodEnum) return isIn(new Set<unknown>(schema.options));
  if (schema instanceof z.ZodLiteral) return isIn(schema.values);
  if (schema instanceof z.ZodNullable) return orNull(testOf(schema.unwrap()));
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return testOf(schema.unwrap());
  if (schema instanceof z.ZodArray) return everyItem(testOf(schema.element));
  if (schema instanceof z.ZodObject) return objectTest(schema);
  if (schema instanceof z.ZodRecord) return recordTest(schema);
  if (schema instanceof z.ZodTuple) return tupleTest(schema);
  if (schema instanceof z.ZodDiscriminatedUnion) return choiceTest(schema);
  if (schema instanceof z.ZodUnion) return unionTest(schema);
  return null;
}

const isString: Test = (value) => typeof value === "string";
/** A string with checks is asked of the schema. */
const isPlainString = ({ def }: z.ZodString): boolean => !def.checks?.length && !("format" in def) && !def.coerce;
const isBoolean: Test = (value) => typeof value === "boolean";
const isIn =
  (values: ReadonlySet<unknown>): Test =>
  (value) =>
    values.has(value);
const orNull =
  (test: Test): Test =>
  (value) =>
    value === null || test(value);

/** Whether the schema accepts it and returns the very value. */
function sameByParsing(schema: z.core.$ZodType): Test {
  return (value) => {
    const { success, data } = z.safeParse(schema, value);
    return success && Object.is(data, value);
  };
}

function numberTest(schema: z.ZodNumber): Test {
  const { checks = [], coerce } = schema.def;
  if (coerce || "format" in schema.def) return sameByParsing(schema);
  const isPlain = checks.length === 0;
  const isInteger = checks.length === 1 && schema.format === "safeint";
  if (isPlain) return Number.isFinite;
  return isInteger ? Number.isSafeInteger : (value) => typeof value === "number" && sameByParsing(schema)(value);
}

function everyItem(test: Test): Test {
  return (value) => {
    if (!Array.isArray(value)) return false;
    // Without a callback for each item: tokens are most of a trajectory.
    for (let at = 0; at < value.length; at++) if (!test(value[at])) return false;
    return true;
  };
}

/** No field is missing but optional ones. Other keys are only where the schema takes them as they are. */
function objectTest(schema: z.ZodObject): Test | null {
  const { catchall } = schema.def;
  const isLoose = catchall instanceof z.ZodUnknown;
  if (catchall !== undefined && !isLoose && !(catchall instanceof z.ZodNever)) return null;
  const fields = Object.entries(schema.shape).map(([name, field]) => {
    const isOptional = field instanceof z.ZodOptional && field._zod.optin === "optional";
    return { name, test: testOf(field), isOptional };
  });
  return (value) => {
    if (!isObject(value)) return false;
    let left = 0;
    for (const key in value) {
      if (key === "__proto__") return false;
      left++;
    }
    for (const { name, test, isOptional } of fields) {
      const item = value[name];
      if (item === undefined && isOptional) continue;
      if (item === undefined || !test(item)) return false;
      left--;
    }
    return isLoose || left === 0;
  };
}

/** A schema drops the key `__proto__`. */
function recordTest({ keyType, valueType }: z.ZodRecord): Test | null {
  if (!(keyType instanceof z.ZodString) || !isPlainString(keyType)) return null;
  const test = testOf(valueType);
  return (value) => {
    if (!isObject(value)) return false;
    for (const key in value) if (key === "__proto__" || !test(value[key])) return false;
    return true;
  };
}

function tupleTest({ def }: z.ZodTuple): Test | null {
  if (def.rest !== null || def.items.some((item) => item._zod.optin !== undefined)) return null;
  const tests = def.items.map(testOf);
  return (value) => Array.isArray(value) && value.length === tests.length && tests.every((test, at) => test(value[at]));
}

/** By the literal that says which option it is. */
function choiceTest({ def }: z.ZodDiscriminatedUnion): Test | null {
  const tests = new Map<unknown, Test>();
  for (const option of def.options) {
    const literal = option instanceof z.ZodObject ? option.shape[def.discriminator] : undefined;
    if (!(literal instanceof z.ZodLiteral)) return null;
    const test = testOf(option);
    for (const value of literal.values) tests.set(value, test);
  }
  return (value) => isObject(value) && tests.get(value[def.discriminator])?.(value) === true;
}

/** The first option that accepts a value decides what becomes of it. */
function unionTest({ def }: z.ZodUnion): Test | null {
  if (def.inclusive === false) return null;
  const options = def.options.map((option) => ({ option, test: testOf(option) }));
  return (value) => {
    for (const { option, test } of options) {
      if (test(value)) return true;
      if (z.safeParse(option, value).success) return false;
    }
    return false;
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
