import assert from "node:assert/strict";
import { test } from "node:test";
import { retryAfterSeconds } from "../../../base/wire/retry-after.ts";

test("a Retry-After is a number of seconds or a date, never negative and never more than an hour", () => {
  const now = Date.parse("Sat, 21 Nov 2026 10:00:00 GMT");
  for (const [header, seconds] of [
    ["3", 3],
    [" 0.5 ", 0.5],
    ["0", 0],
    ["999999999", 3600],
    ["Sat, 21 Nov 2026 10:01:30 GMT", 90],
    ["Sat, 21 Nov 2026 09:00:00 GMT", 0],
    [["7", "9"], 7],
    ["soon", null],
    ["-5", null],
    ["", null],
    [undefined, null],
  ] as const)
    assert.equal(
      retryAfterSeconds(header === undefined ? header : typeof header === "string" ? header : [...header], now),
      seconds,
      String(header),
    );
});
