import assert from "node:assert/strict";
import { test } from "node:test";
import { streamEncoder } from "../../../base/wire/framing.ts";

test("a JSON array is whole however its elements were written", () => {
  for (const writes of [[], [[]], [["1"]], [["1", "2"], [], ["3"]], [[], ["1"], ["2"]]]) {
    const encoder = streamEncoder("json-array");
    const text = writes.map((frames) => encoder.encode(frames.map((data) => ({ data })))).join("") + encoder.end();
    assert.deepEqual(JSON.parse(text), writes.flat().map(Number));
  }
});

test("no framing lets a line of Unicode end within an element", () => {
  for (const framing of ["sse", "json-array"] as const) {
    const text = streamEncoder(framing).encode([{ data: JSON.stringify("a\u2028b\u2029c\u0085d") }]);
    assert.ok(text.includes('"a\\u2028b\\u2029c\\u0085d"'), framing);
  }
});

test("two streams at once share no state", () => {
  const [a, b] = [streamEncoder("json-array"), streamEncoder("json-array")];
  a.encode([{ data: "1" }]);
  assert.equal(b.encode([{ data: "2" }]) + b.end(), "[2\n]");
});

test("server-sent events are framed as ever, and end as they are", () => {
  const encoder = streamEncoder("sse");
  assert.equal(encoder.encode([{ event: "e", data: "1" }, { data: "2" }]) + encoder.end(), "event: e\ndata: 1\n\ndata: 2\n\n");
});
