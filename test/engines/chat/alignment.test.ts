import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { alignById, isMeasured } from "../../../engines/chat/alignment.ts";

test("a logprob stands only where it was measured, whatever entries are missing", () => {
  // Few different ids, so that most of them could stand in several places.
  const token = fc.record({ id: fc.integer({ min: 0, max: 3 }), kept: fc.boolean() });
  fc.assert(
    fc.property(fc.array(token, { maxLength: 30 }), (tokens) => {
      const entries = tokens.flatMap(({ id, kept }, at) => (kept ? [{ id, logprob: -(at + 1) }] : []));
      const logprobs = alignById(
        tokens.map(({ id }) => id),
        entries,
      );
      assert.equal(logprobs?.length, tokens.length);
      for (const [at, logprob] of (logprobs ?? []).entries()) assert.ok(logprob === null || logprob === -(at + 1), `${at}: ${logprob}`);
      if (tokens.every(({ kept }) => kept)) assert.ok(logprobs?.every((logprob) => logprob !== null));
    }),
  );
});

test("entries of other ids are no alignment, and an unmeasured logprob is none", () => {
  assert.equal(alignById([1, 2], [{ id: 3, logprob: -1 }]), null);
  assert.equal(
    alignById(
      [1, 2],
      [
        { id: 2, logprob: -1 },
        { id: 1, logprob: -1 },
      ],
    ),
    null,
  );
  assert.deepEqual(
    alignById(
      [1, 2],
      [
        { id: 1, logprob: -3.4e38 },
        { id: 2, logprob: -1 },
      ],
    ),
    [null, -1],
  );
  assert.deepEqual(alignById([7, 7], [{ id: 7, logprob: -1 }]), [null, null]);
});

test("a logprob above 0 was not measured, as NaN and -9999 were not", () => {
  for (const logprob of [0.3, 1, Number.NaN, -9999, null]) assert.equal(isMeasured(logprob), false, String(logprob));
  assert.deepEqual(
    alignById(
      [1, 2],
      [
        { id: 1, logprob: 0.5 },
        { id: 2, logprob: -0.5 },
      ],
    ),
    [null, -0.5],
  );
});
