import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { readJson } from "../../../base/schema/read-json.ts";
import { sameJson } from "../../../base/wire/same-json.ts";

test("two values of JSON are the same where they are deeply equal, and nowhere else", () => {
  const value = fc.jsonValue({ maxDepth: 3 }).map((one) => readJson(JSON.stringify(one)) as unknown);
  fc.assert(
    fc.property(value, value, (a, b) => {
      assert.equal(sameJson(a, b), isDeepStrictEqual(a, b));
      assert.ok(sameJson(a, structuredClone(a)));
    }),
  );
  assert.ok(!sameJson({ a: undefined }, { b: 1 }));
  assert.ok(!sameJson({ a: 1 }, { a: 1, b: 2 }));
  assert.ok(!sameJson([1], { 0: 1 }));
});
