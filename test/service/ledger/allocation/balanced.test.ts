/** How samples are shared among groups. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { allocated } from "../../../../service/ledger/allocation/index.ts";

const bounds = fc
  .tuple(fc.integer({ min: 2, max: 6 }), fc.nat(6), fc.nat(12))
  .map(([first, more, most]) => ({ first, samples: first + more, most: first + more + most }));
const rewards = fc.array(fc.constantFrom(0, 0.5, 1), { maxLength: 6 });

test("whatever the rewards, all groups together get at most their samples, and none fewer than its first or more than its most", () => {
  fc.assert(
    fc.property(bounds, fc.array(rewards, { maxLength: 40 }), ({ first, samples, most }, groups) => {
      let [spare, made] = [0, 0];
      for (const all of groups) {
        const given = allocated({ policy: "balanced", first, most }, { rewards: all.slice(0, first), samples }, spare);
        const isEqual = all.slice(0, first).every((one) => one === all[0]);
        const wanted = Math.min(all.length < 2 ? samples - first : isEqual ? 0 : most - first, spare + samples - first);
        assert.equal(given.more, wanted);
        assert.equal(given.spare, spare + samples - first - given.more);
        assert.ok(given.more >= 0 && given.spare >= 0 && first + given.more <= most);
        [spare, made] = [given.spare, made + first + given.more];
      }
      assert.equal(made + spare, samples * groups.length);
    }),
  );
});
