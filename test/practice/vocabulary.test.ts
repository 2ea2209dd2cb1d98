import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { merges } from "../../practice/tokenizer/merges.ts";
import { trainMerges } from "../../practice/tokenizer/train-merges.ts";
import {
  bytesOf,
  decodeBytes,
  encode,
  encodeBytes,
  endOfTurn,
  firstAddedId,
  printableToken,
  TextStream,
  textOfToken,
  vocabularySize,
} from "../../practice/tokenizer/vocabulary.ts";

test("any bytes survive encoding and decoding", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      assert.deepEqual([...decodeBytes(encodeBytes(bytes))], [...bytes]);
    }),
  );
});

test("any text survives encoding and decoding", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
      assert.equal(Buffer.from(decodeBytes(encode(text))).toString(), text);
    }),
  );
});

test("the names of added tokens become those tokens, wherever they stand", () => {
  const ids = encode("a<|im_end|><tool_call>b");
  assert.deepEqual(ids, [97, endOfTurn, firstAddedId + 5, 98]);
  assert.equal(Buffer.from(decodeBytes(ids)).toString(), "a<|im_end|><tool_call>b");
});

test("every token is reachable: its own bytes, and no two alike", () => {
  const seen = new Set(Array.from({ length: vocabularySize }, (_, id) => Buffer.from(bytesOf(id)).toString("hex")));
  assert.equal(seen.size, vocabularySize);
  assert.equal(vocabularySize, 1024);
});

test("English costs far fewer tokens than bytes", () => {
  const text = "The engine reads the file, runs the tests and returns an error message when a call fails. ".repeat(20);
  assert.ok(encode(text).length * 2 < text.length, `${encode(text).length} tokens for ${text.length} characters`);
});

test("a character that comes in parts is said once it is whole", () => {
  const stream = new TextStream();
  const parts = [...Buffer.from("漢")];
  assert.deepEqual(
    parts.map((byte) => stream.feed(byte)),
    ["", "", "漢"],
  );
  assert.equal(stream.feed(parts[0] as number), "");
  assert.equal(stream.finish(), "\u{fffd}", "an end that never came is shown as such");
  assert.equal(textOfToken(parts[0] as number), "");
});

test("turn markers have no text, tags have", () => {
  const stream = new TextStream();
  assert.deepEqual(
    encode("<|im_start|>x<think><|im_end|>").map((id) => stream.feed(id)),
    ["", "x", "<think>", ""],
  );
});

test("printable names are those of byte-level vocabularies", () => {
  assert.deepEqual([32, 10, 33, 173, 195].map(printableToken), ["Ġ", "Ċ", "!", "Ń", "Ã"]);
});

test("hostile text is encoded in time: no run costs its square", () => {
  const started = performance.now();
  for (const unit of [" ", "a", "!", "\n", "\t ", "é", "ab1 "]) encode(unit.repeat(400_000 / unit.length));
  const milliseconds = performance.now() - started;
  // Some hundred milliseconds; a quadratic scan of such a run takes minutes.
  assert.ok(milliseconds < 20_000, `${milliseconds} ms`);
});

test("merges are learned by frequency, and a tie goes to the lower pair", () => {
  assert.deepEqual(trainMerges(Buffer.from("aab aab xy"), 2), [97, 97, 256, 98]);
});

test("the vocabulary is the one that recordings were made with", () => {
  assert.equal(merges.length, 2 * (vocabularySize - 256 - 9));
  assert.deepEqual(encode("List the files, please."), encode("List the files, please."));
  assert.equal(
    encode("the return").every((id) => id < firstAddedId),
    true,
  );
});
