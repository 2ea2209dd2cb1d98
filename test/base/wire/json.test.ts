import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { parseJson } from "../../../base/wire/json.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("a body is its value", () => {
  assert.deepEqual(parseJson(bytes('{"a":[1,{"b":"é"}]}')), { a: [1, { b: "é" }] });
});

const refused: [string, Uint8Array, number][] = [
  ["a million nested brackets", bytes("[".repeat(1_000_000) + "]".repeat(1_000_000)), 400],
  ["a million nested objects", bytes(`${'{"a":'.repeat(1_000_000)}1${"}".repeat(1_000_000)}`), 400],
  ["a million open brackets", bytes("[".repeat(1_000_000)), 400],
  ["no JSON", bytes("hello"), 400],
  ["nothing", bytes(""), 400],
  ["bytes that are no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), 400],
];
for (const [title, body, status] of refused) {
  test(`${title} is a clear error`, () => {
    assert.throws(
      () => parseJson(body),
      (error) => error instanceof AlidadeError && error.code === "request_invalid" && error.status === status,
    );
  });
}

test("a body that is too large is refused by its size alone", () => {
  assert.throws(
    () => parseJson(bytes('"0123456789"'), { maxBytes: 10 }),
    (error) => error instanceof AlidadeError && error.status === 413 && /12 bytes/.test(error.message),
  );
});

test("the bound on depth counts levels, not brackets", () => {
  assert.deepEqual(parseJson(bytes("[[1],[2],[3]]"), { maxDepth: 2 }), [[1], [2], [3]]);
  assert.throws(() => parseJson(bytes("[[[1]]]"), { maxDepth: 2 }), AlidadeError);
});
