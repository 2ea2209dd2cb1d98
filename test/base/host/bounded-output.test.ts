import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BoundedOutput } from "../../../base/host/bounded-output.ts";

test("the first or the last bytes are kept, however they come, and the others counted", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 20, unit: "grapheme-ascii" })), fc.nat(60), (pieces, limit) => {
      const [start, end] = [new BoundedOutput(limit), new BoundedOutput(limit, "end")];
      for (const piece of pieces) for (const output of [start, end]) output.push(Buffer.from(piece));
      const all = pieces.join("");
      assert.equal(start.toString(), all.slice(0, limit));
      assert.equal(end.toString(), all.slice(Math.max(0, all.length - limit)));
      for (const output of [start, end]) assert.equal(output.dropped, Math.max(0, all.length - limit));
    }),
  );
});
