import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GrowingText } from "../../../base/wire/growing-text.ts";

test("text is what was appended, asked for in between or not", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), fc.boolean()), { maxLength: 200 }), (pieces) => {
      const text = new GrowingText();
      let wanted = "";
      for (const [piece, isAsked] of pieces) {
        text.append(piece);
        wanted += piece;
        if (isAsked) assert.equal(String(text), wanted);
      }
      assert.equal(String(text), wanted);
    }),
  );
});
