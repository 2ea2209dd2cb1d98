import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsObject, canonicalArguments, parseArguments } from "../../../base/schema/arguments.ts";

const nested = (levels: number, space = ""): string => `{"a":${space}${"[".repeat(levels)}${"]".repeat(levels)}}`;

test("arguments are a value, or undefined where they are no JSON", () => {
  assert.deepEqual(parseArguments('{"a":[1]}'), { a: [1] });
  assert.equal(parseArguments("null"), null);
  for (const raw of ["", "{", "ls -la"]) assert.equal(parseArguments(raw), undefined);
});

test("an object is told from every other value", () => {
  assert.deepEqual(argumentsObject('{"__proto__":1}'), JSON.parse('{"__proto__":1}'));
  for (const raw of ["[]", "null", "5", '"ls"', "{"]) assert.equal(argumentsObject(raw), null);
});

test("spacing and the order of keys do not tell values apart", () => {
  assert.equal(canonicalArguments('{"b": 1, "a": [ ]}'), canonicalArguments('{"a":[],"b":1}'));
  assert.notEqual(canonicalArguments('{"a":1}'), canonicalArguments('{"a":2}'));
  assert.equal(canonicalArguments("{"), null);
});

test("what nests deeper than any tool means is text, however deep", () => {
  assert.notEqual(canonicalArguments(nested(199)), null);
  for (const levels of [200, 3_000, 100_000]) {
    assert.equal(parseArguments(nested(levels)), undefined);
    assert.equal(canonicalArguments(nested(levels)), null);
  }
});
