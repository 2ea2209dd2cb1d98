import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { alignTokens } from "../../../base/tokens/align.ts";

const ids = fc.array(fc.nat(3), { maxLength: 25 });

/** Length of the longest common subsequence, by the textbook's table. */
function longestCommon(a: number[], b: number[]): number {
  const table = [...a, 0].map(() => [...b, 0].map(() => 0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i]![j] = a[i] === b[j] ? 1 + (table[i + 1]?.[j + 1] ?? 0) : Math.max(table[i + 1]?.[j] ?? 0, table[i]?.[j + 1] ?? 0);
  return table[0]![0]!;
}

test("stretches cover both lists in order, equal where they say so, and keep as much as can be kept", () => {
  fc.assert(
    fc.property(ids, ids, (a, b) => {
      const stretches = alignTokens(a, b);
      let [atA, atB, kept] = [0, 0, 0];
      for (const [index, { same, a: inA, b: inB }] of stretches.entries()) {
        assert.deepEqual([inA[0], inB[0]], [atA, atB]);
        assert.notEqual(stretches[index - 1]?.same, same);
        if (same) {
          assert.deepEqual(a.slice(...inA), b.slice(...inB));
          kept += inA[1] - inA[0];
        }
        [atA, atB] = [inA[1], inB[1]];
      }
      assert.deepEqual([atA, atB], [a.length, b.length]);
      assert.equal(kept, longestCommon(a, b));
    }),
    { numRuns: 500 },
  );
});

test("one edit in a long list is one stretch, and lists beyond the limit part in one piece", () => {
  const long = Array.from({ length: 50_000 }, (_, at) => at);
  assert.deepEqual(alignTokens(long, long.with(30_000, -1)), [
    { same: true, a: [0, 30_000], b: [0, 30_000] },
    { same: false, a: [30_000, 30_001], b: [30_000, 30_001] },
    { same: true, a: [30_001, 50_000], b: [30_001, 50_000] },
  ]);
  const other = long.map((id) => (id > 10 && id < 40_000 ? -id : id));
  assert.equal(alignTokens(long, other, 100).length, 3);
});
