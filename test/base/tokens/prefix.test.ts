import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { commonPrefix, startsWith } from "../../../base/tokens/prefix.ts";

const ids = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 30 });

test("the common prefix is equal on both sides and cannot be longer", () => {
  fc.assert(
    fc.property(ids, ids, (a, b) => {
      const length = commonPrefix(a, b);
      assert.deepEqual(a.slice(0, length), b.slice(0, length));
      assert.ok(length === a.length || length === b.length || a[length] !== b[length]);
    }),
  );
});

test("number[] and Int32Array compare the same, from any position known to be equal", () => {
  fc.assert(
    fc.property(ids, ids, fc.nat(30), (a, b, guess) => {
      const length = commonPrefix(a, b);
      assert.equal(commonPrefix(Int32Array.from(a), b), length);
      assert.equal(commonPrefix(a, Int32Array.from(b), Math.min(guess, length)), length);
    }),
  );
});

test("a list begins with another exactly when nothing of that one is missing or edited", () => {
  fc.assert(
    fc.property(ids, ids, fc.boolean(), (prefix, rest, real) => {
      const whole = real ? [...prefix, ...rest] : rest;
      assert.equal(startsWith(whole, prefix), prefix.length <= whole.length && prefix.every((id, at) => whole[at] === id));
    }),
  );
});
