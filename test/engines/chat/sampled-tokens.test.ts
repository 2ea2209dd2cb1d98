import assert from "node:assert/strict";
import { test } from "node:test";
import { fromChatEntry, withOwnBytes } from "../../../engines/chat/sampled-tokens.ts";
import { ChunkReader } from "../../../engines/vllm/chunks.ts";

const entry = (token: string, more: Record<string, unknown> = {}) => ({ token, logprob: -1, bytes: [...Buffer.from(token)], ...more });

test("bytes of a part of a character are what the server tells of that part, else null", () => {
  const bytesOf = (said: object) => fromChatEntry(1, said as Record<string, unknown>, 0).bytes;
  assert.deepEqual(bytesOf(entry("é")), [0xc3, 0xa9]);
  assert.deepEqual(bytesOf({ token: "é", logprob: -1 }), [0xc3, 0xa9]);
  // A server that knows its vocabulary.
  assert.deepEqual(bytesOf(entry("\u{fffd}", { bytes: [0xf0, 0x9f] })), [0xf0, 0x9f]);
  // Servers that make the bytes from the text.
  assert.equal(bytesOf(entry("\u{fffd}")), null);
  assert.equal(bytesOf(entry("")), null);
  assert.equal(bytesOf({ logprob: -1 }), null);
});

test("a character of several tokens is not its last token's own, and a token behind it is itself again", () => {
  const told = ["a", "", "", "é", "b", "\u{fffd}", " c"].map((token) => fromChatEntry(1, entry(token, { top_logprobs: [entry("ü")] }), 1));
  const own = withOwnBytes(told);
  assert.deepEqual(
    own.map(({ bytes }) => bytes && String(Buffer.from(bytes))),
    ["a", null, null, null, "b", null, " c"],
  );
  assert.deepEqual(
    own.map(({ top }) => top[0]?.bytes === null),
    [false, false, true, true, false, false, true],
  );
});

test("tokens that vLLM tells chunk by chunk are the same as told at once, and a list of another length is none", () => {
  const chunk = (tokens: string[], ids: number[]) =>
    Buffer.from(
      JSON.stringify({
        model: "m",
        choices: [{ index: 0, delta: {}, token_ids: ids, logprobs: { content: tokens.map((one) => entry(one)) } }],
      }),
    );
  const read = (...chunks: Buffer[]) => {
    const reader = new ChunkReader("http://engine", { top: 0 });
    return chunks.flatMap((one) => {
      const events: Parameters<ChunkReader["read"]>[1] = [];
      reader.read(one, events);
      return events.flatMap((event) => (event.type === "tokens" ? (event.tokens ?? []) : []));
    });
  };
  assert.deepEqual(read(chunk(["", "é", "ü"], [1, 2, 3])), read(chunk([""], [1]), chunk(["é"], [2]), chunk(["ü"], [3])));
  assert.deepEqual(read(chunk(["a"], [1, 2])), []);
});
