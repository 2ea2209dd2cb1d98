import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { commonPrefix, continuesExactly, startsWith } from "../../tokens/prefix.ts";

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

test("a prompt continues a call exactly when it starts with the prompt and sample joined", () => {
  fc.assert(
    fc.property(ids, ids, ids, fc.boolean(), (prompt, sampled, rest, real) => {
      const next = real ? [...prompt, ...sampled, ...rest] : rest;
      assert.equal(continuesExactly(next, prompt, sampled), startsWith(next, [...prompt, ...sampled]));
    }),
  );
});

test("one edited token anywhere ends an exact continuation", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { minLength: 1 }), ids, fc.nat(), (prompt, sampled, where) => {
      const whole = [...prompt, ...sampled];
      const at = where % whole.length;
      const edited = whole.with(at, (whole[at] as number) + 1);
      assert.equal(continuesExactly(edited, prompt, sampled), false);
    }),
  );
});
