/** The log of a session beside its trajectory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogLine } from "../../../base/schema/session-log.ts";
import { packLog } from "../../../service/blobs/index.ts";

test("a log that is too long to lie beside its trajectory, or damaged, is left out", () => {
  const line = (length: number): LogLine => ({ type: "ended", time: 1, reason: "x".repeat(length) }) as unknown as LogLine;
  const most = 32 * 1024 * 1024;
  assert.equal(packLog([line(most), line(9)]).length, 1);
  assert.deepEqual(packLog([line(most), line(9), line(most)]), []);
  assert.deepEqual(packLog([line(9), { type: "damaged" } as unknown as LogLine]), []);
});
