import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { AlidadeError } from "../../../base/errors.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import { encodeSse, onOneLine, type SseFrame } from "../../../base/wire/sse.ts";
import { decodeSse } from "../../fakes/engines/decode-sse.ts";

async function* chunksOf(bytes: Uint8Array, sizes: number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? bytes.length);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function decode(text: string, sizes = [text.length + 1], maxEventBytes?: number): Promise<SseFrame[]> {
  const frames: SseFrame[] = [];
  for await (const frame of decodeSse(chunksOf(new TextEncoder().encode(text), sizes), { maxEventBytes })) frames.push(frame);
  return frames;
}

const cases: [string, string, SseFrame[]][] = [
  ["a frame ends with an empty line", "data: a\n\ndata: b\n\n", [{ data: "a" }, { data: "b" }]],
  ["the event's name goes with its data only", "event: x\ndata: a\n\ndata: b\n\n", [{ event: "x", data: "a" }, { data: "b" }]],
  [
    "CRLF and lone CR end lines",
    "event: x\r\ndata: a\r\n\r\ndata: b\r\rdata: c\n\n",
    [{ event: "x", data: "a" }, { data: "b" }, { data: "c" }],
  ],
  ["lines of data are joined by a newline", "data: a\ndata:\ndata: b\n\n", [{ data: "a\n\nb" }]],
  ["one space after the colon is taken off", "data:  a\ndata:b\n\n", [{ data: " a\nb" }]],
  ["comments, ids and retry times are skipped", ": hi\nid: 1\nretry: 5\ndata: a\n: more\n\n", [{ data: "a" }]],
  ["an event without data is none", "event: ping\n\ndata: a\n\n", [{ data: "a" }]],
  ["a stream that breaks off gives no half frame", 'data: a\n\ndata: {"b', [{ data: "a" }]],
  ["a byte order mark is skipped", "\ufeffdata: a\n\n", [{ data: "a" }]],
  ["empty data is data", "data\n\n", [{ data: "" }]],
];

for (const [title, text, frames] of cases) {
  test(title, async () => {
    assert.deepEqual(await decode(text), frames);
    assert.deepEqual(await decode(text, [1]), frames, "one byte at a time");
  });
}

test("frames survive any cut, in the middle of a character too", async () => {
  const frame = fc.record({
    event: fc.option(fc.stringMatching(/^[a-z._]{1,12}$/), { nil: undefined }),
    data: fc.string({ unit: "binary" }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(frame), fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (frames, sizes) => {
      const text = frames.map((one) => encodeSse(one)).join("");
      // A newline in data comes back as LF, whichever it was, and lone surrogates have no UTF-8 form.
      const wanted = frames.map((one) => ({ ...one, data: onOneLine(one.data.replace(/\r\n|\r/g, "\n")).toWellFormed() }));
      const got = await decode(text, sizes);
      assert.deepEqual(
        got.map((one) => ({ event: one.event, data: one.data })),
        wanted.map((one) => ({ event: one.event, data: one.data })),
      );
    }),
    { numRuns: 200 },
  );
});

test("line ends of Unicode are escaped, for clients that read by lines end one there", async () => {
  const said = { "a\u2028": "b\u2029c\u0085d", e: "\\u2028 \v\f\x1c\x1d\x1e \u{1f600}\u0086" };
  const text = encodeSse({ data: JSON.stringify(said) });
  // Python's `splitlines`, as httpx has it.
  const ends = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029";
  assert.ok(![...text.trimEnd()].some((character) => ends.includes(character)), text);
  const [frame] = await decode(text);
  assert.deepEqual(readJson(frame?.data ?? ""), said);
});

test("a line without an end and an event without an end are errors, not memory", async () => {
  for (const text of [`data: ${"x".repeat(200)}`, "data: xxxxxxxxx\n".repeat(50), "data:\n".repeat(300)]) {
    await assert.rejects(decode(text, [7], 100), (error) => error instanceof AlidadeError && error.code === "engine_error");
  }
});

test("leaving early closes the source", async () => {
  let closed = false;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield new TextEncoder().encode("data: a\n\n");
    } finally {
      closed = true;
    }
  }
  for await (const frame of decodeSse(source())) {
    assert.equal(frame.data, "a");
    break;
  }
  assert.ok(closed);
});
