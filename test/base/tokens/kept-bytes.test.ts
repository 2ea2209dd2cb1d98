import assert from "node:assert/strict";
import { test } from "node:test";
import { keptBytes } from "../../../base/tokens/kept-bytes.ts";

test("kept bytes are those of the pieces, and no more memory than that", () => {
  const kept = keptBytes(Buffer.from("1,"), new Uint8Array(), Buffer.from("22"));
  assert.equal(kept.toString(), "1,22");
  assert.equal(kept.buffer.byteLength, 4);
  assert.equal(keptBytes().length, 0);
});
