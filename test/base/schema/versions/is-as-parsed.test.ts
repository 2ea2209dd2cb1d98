import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { readTrajectory, Trajectory } from "../../../../base/schema/trajectory.ts";
import { isAsParsed } from "../../../../base/schema/versions/is-as-parsed.ts";
import { reconstruct } from "../../../../reconstruct/index.ts";
import { viewedRollout } from "../../../fakes/records/viewed-run.ts";
import { moves, play } from "../../../reconstruct/random-sessions.ts";

const literal = <Type extends string>(type: Type) => z.literal(type);

const schemas: Record<string, z.ZodType> = {
  string: z.string(),
  pattern: z.string().regex(/^a/),
  trimmed: z.string().trim(),
  integer: z.number().int(),
  "positive integer": z.number().int().positive(),
  enum: z.enum(["a", "b"]),
  "list of integers": z.array(z.number().int()),
  "list that a check changes": z.array(z.number()).overwrite((list) => list.toSorted()),
  "strict object": z.strictObject({ a: z.number(), b: z.string().optional(), c: z.string().default("d") }),
  "object that drops keys": z.object({ a: z.number().optional() }),
  "loose object": z.looseObject({ a: z.number().optional(), b: z.string().optional() }),
  "object whose field is optional in both senses": z.strictObject({ a: z.number().default(1).optional() }),
  "object with a rule": z.strictObject({ a: z.number() }).refine(({ a }) => a > 1),
  record: z.record(z.string(), z.number().nullable()),
  "record of few keys": z.record(z.enum(["a", "b"]), z.number()),
  tuple: z.tuple([z.number(), z.string()]),
  union: z.union([z.strictObject({ a: z.number(), b: z.number().default(1) }), z.strictObject({ a: z.number() }), z.string()]),
  choice: z.discriminatedUnion("b", [
    z.strictObject({ b: literal("a"), a: z.number() }),
    z.strictObject({ b: literal("b"), c: z.string().default("") }),
  ]),
  unknown: z.unknown(),
  custom: z.custom<unknown>((value) => value !== null),
  converted: z.string().transform((text) => text.length),
  prepared: z.preprocess((value) => (value === null ? 0 : value), z.number()),
  caught: z.number().catch(0),
};

const leaf = fc.constantFrom<unknown>(null, true, 0, 2, -1, 1.5, 2 ** 53, Number.POSITIVE_INFINITY, "", "a", "b", " a", "d");
const key = fc.constantFrom("a", "b", "c", "__proto__");
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((entries) => {
      const object: Record<string, unknown> = {};
      for (const [name, value] of entries)
        Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
      return object;
    }),
  ),
})).value;

for (const [name, schema] of Object.entries(schemas))
  test(`${name}: what is as parsed is what the schema returns`, () => {
    const isPlain = isAsParsed(schema);
    fc.assert(
      fc.property(values, (value) => {
        if (isPlain(value)) assert.deepStrictEqual(schema.parse(value), value);
      }),
      { numRuns: 1_000 },
    );
  });

test("values that a schema leaves as they are need no schema", () => {
  const plain: [name: keyof typeof schemas, value: unknown][] = [
    ["strict object", { c: "x", a: 1 }],
    ["loose object", { a: 1, z: [] }],
    ["object with a rule", { a: 2 }],
    ["record", { a: 1, b: null }],
    ["tuple", [1, "a"]],
    ["union", { a: 1, b: 2 }],
    ["choice", { b: "a", a: 1 }],
  ];
  for (const [name, value] of plain) assert.equal(isAsParsed(schemas[name] ?? assert.fail())(value), true, name);
  assert.equal(isAsParsed(schemas.union ?? assert.fail())({ a: 1 }), false, "the first option fills in a default");
});

const trajectories = [
  ...fc.sample(moves, { numRuns: 40, seed: 20_261_129 }).map((played) => reconstruct(play(played).entries)),
  viewedRollout({
    ...{ at: 3, task_id: "clamp", group_id: "g", sample_index: 3, size: 8, reward: 0, turns: 4, words: 1 },
    vocabulary: new Map(),
  }).trajectory,
].map((one): string => JSON.stringify(one));

test("recorded trajectories are read without a copy, and as the schema reads them", () => {
  for (const text of trajectories) {
    const value: unknown = JSON.parse(text);
    assert.equal(readTrajectory(value), value);
    assert.deepStrictEqual(Trajectory.parse(value), value);
  }
});

type Place = { into: Record<string, unknown> | unknown[]; key: string };

function placesIn(value: unknown): Place[] {
  if (typeof value !== "object" || value === null) return [];
  const into = value as Place["into"];
  return Object.entries(into).flatMap(([name, child]) => [{ into, key: name }, ...placesIn(child)]);
}

test("a trajectory that is changed anywhere is read, or refused, as the schema does", () => {
  const change = fc.record({
    text: fc.constantFrom(...trajectories),
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    how: fc.constantFrom("replace", "remove", "add"),
    by: values,
  });
  fc.assert(
    fc.property(change, ({ text, at, how, by }) => {
      const value: unknown = JSON.parse(text);
      const places = placesIn(value);
      const { into, key: name } = places[Math.floor(at * places.length)] ?? assert.fail();
      if (how === "remove" && !Array.isArray(into)) delete into[name];
      else Reflect.set(into, how === "add" && !Array.isArray(into) ? "extra" : name, by);
      const expected = Trajectory.safeParse(structuredClone(value));
      if (expected.success) assert.deepStrictEqual(readTrajectory(value), expected.data);
      else assert.throws(() => readTrajectory(value), z.ZodError);
    }),
    { numRuns: 3_000 },
  );
});
