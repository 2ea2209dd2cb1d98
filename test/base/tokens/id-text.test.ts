import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { IdText, parseIds } from "../../../base/tokens/id-text.ts";
import { commonPrefix } from "../../../base/tokens/prefix.ts";

const id = fc.oneof(fc.nat({ max: 12 }), fc.nat({ max: 200_000 }));
const ids = fc.array(id, { maxLength: 12 });
const textOf = (list: number[]): Buffer => Buffer.from(list.join(","));

test("the common head of two texts is their common prefix of ids, never half an id", () => {
  fc.assert(
    fc.property(ids, ids, ids, (shared, a, b) => {
      const [left, right] = [
        [...shared, ...a],
        [...shared, ...b],
      ];
      const head = IdText.of(left).commonHead(textOf(right));
      assert.equal(head.ids, commonPrefix(left, right));
      assert.equal(head.bytes, textOf(left.slice(0, head.ids)).length);
    }),
    { numRuns: 2_000 },
  );
  const head = (a: number[], b: number[]) => IdText.of(a).commonHead(textOf(b)).ids;
  assert.deepEqual([head([12, 345], [12, 34, 5]), head([12, 34], [12, 345]), head([12], [1]), head([], [1])], [1, 1, 0, 0]);
});

test("texts built upon texts, at any place of them and in any order of asking, have the ids that they were built from", () => {
  const step = fc.record({ base: fc.nat(), head: fc.nat({ max: 20 }), tail: ids, more: ids, ask: fc.boolean() });
  fc.assert(
    fc.property(ids, fc.array(step, { maxLength: 12 }), (first, steps) => {
      const built = [{ text: IdText.of(first), list: first }];
      for (const { base, head, tail, more, ask } of steps) {
        const on = built[base % built.length]!;
        const begin = on.text.head(head);
        const list = [...on.list.slice(0, head), ...tail, ...more];
        const text = on.text.extendText(begin, textOf(tail), tail.length).append(more);
        if (ask) assert.deepEqual(text.toIds(), list);
        built.push({ text, list });
      }
      for (const { text, list } of built) {
        assert.equal(text.length, list.length);
        assert.deepEqual(text.toIds(), list);
        const [last, all] = [list.slice(-3), textOf(list)];
        assert.deepEqual([text.tail(3), text.tail(0), text.tail(1_000)], [last, [], list]);
        assert.ok(text.is(all) && !text.is(textOf([...list, 1])) && (list.length === 0 || !text.is(all.subarray(0, -1))));
        assert.equal(Buffer.concat(text.pieces).toString(), list.join(","));
        assert.equal(text.bytes.toString(), list.join(","));
      }
    }),
    { numRuns: 1_000 },
  );
});

test("what is no list of natural numbers is no ids", () => {
  for (const text of ["1,,2", "1,-2", "1.5", '"1"', "1]", "null", "4294967296", "[1]", "1,"])
    assert.equal(parseIds(Buffer.from(text)), null, text);
  assert.deepEqual(parseIds(Buffer.from("0,2147483647")), [0, 0x7fff_ffff]);
  assert.deepEqual(parseIds(Buffer.from("")), []);
});
