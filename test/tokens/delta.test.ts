import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AlidadeError } from "../../errors.ts";
import { decodeDelta, encodeDelta } from "../../tokens/delta.ts";

const ids = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 30 });

test("a delta decodes to the list it was made from, whatever the base", () => {
  fc.assert(
    fc.property(ids, ids, fc.boolean(), (items, base, typed) => {
      const delta = encodeDelta(typed ? Int32Array.from(items) : items, { call_id: "callA", items: base });
      assert.deepEqual(decodeDelta(delta, delta.base_call_id === null ? null : base), items);
    }),
  );
});

test("an appended list stores only what is new", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { minLength: 1 }), ids, (base, added) => {
      assert.deepEqual(encodeDelta([...base, ...added], { call_id: "callA", items: base }), {
        base_call_id: "callA",
        base_len: base.length,
        new: added,
      });
    }),
  );
});

test("messages are compared by what they say", () => {
  const same = (a: { text: string }, b: { text: string }) => a.text === b.text;
  const delta = encodeDelta([{ text: "a" }, { text: "c" }], { call_id: "callA", items: [{ text: "a" }, { text: "b" }] }, same);
  assert.deepEqual(delta, { base_call_id: "callA", base_len: 1, new: [{ text: "c" }] });
});

test("a base that is missing or too short is a damaged log, said in words", () => {
  const delta = { base_call_id: "callA", base_len: 3, new: [1] };
  assert.throws(() => decodeDelta(delta, null), /callA cannot be read/);
  assert.throws(
    () => decodeDelta(delta, [1, 2]),
    (error) => error instanceof AlidadeError && error.code === "store_error",
  );
});
