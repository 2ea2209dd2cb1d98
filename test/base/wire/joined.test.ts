import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withJoined } from "../../../base/wire/joined.ts";

const pieces = fc.array(
  fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  { minLength: 1, maxLength: 5 },
);

test("pieces are one while they are used, also of one who joins others meanwhile", () => {
  fc.assert(
    fc.property(pieces, pieces, (outer, inner) => {
      withJoined(outer, (joined) => {
        assert.deepEqual(
          withJoined(inner, (other) => Buffer.from(other)),
          Buffer.concat(inner),
        );
        assert.deepEqual(Buffer.from(joined), Buffer.concat(outer));
      });
    }),
  );
});

test("the memory is free again when its use has failed, and what is too long for it has its own", () => {
  const fail = (): never => {
    throw new Error("no use");
  };
  const two = [Buffer.from("ab"), Buffer.from("c")];
  assert.throws(() => withJoined(two, fail), /no use/);
  const shared = withJoined(two, (joined) => joined.buffer);
  assert.equal(
    withJoined(two, (joined) => joined.buffer),
    shared,
  );
  const long = [Buffer.alloc(3 * 1024 * 1024, "a"), Buffer.alloc(3 * 1024 * 1024, "b")];
  withJoined(long, (joined) => {
    assert.notEqual(joined.buffer, shared);
    assert.ok(joined.equals(Buffer.concat(long)));
  });
});
