/** What a server lists as pieces of a text, in the alphabets that tokenizers have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { spelledPieces } from "../../../engines/chat/spelled-pieces.ts";

const spelled = (text: string, pieces: string[]) =>
  spelledPieces(
    text,
    pieces.map((_, at) => at),
    pieces,
  ).map(({ bytes }) => bytes.toString("latin1"));

test("pieces of a byte-level vocabulary become their bytes, also where a character is cut in two", () => {
  assert.deepEqual(spelled(" up\né", ["Ġup", "Ċ", "Ã", "©"]), [" up", "\n", "\xc3", "\xa9"]);
  assert.deepEqual(spelled("<｜end▁of▁turn｜> a", ["<｜end▁of▁turn｜>", "Ġa"]).at(-1), " a");
});

test("pieces of SentencePiece become texts and bytes, with or without a space before the text", () => {
  assert.deepEqual(spelled("up to\n", ["▁up", "▁to", "<0x0A>"]), [" up", " to", "\n"]);
  assert.deepEqual(spelled("up", ["u", "p"]), ["u", "p"]);
});

test("pieces that do not spell the text give no token a text", () => {
  for (const pieces of [["Ġup", "x"], ["up"], [], ["b'up'"]]) assert.deepEqual(spelled(" up", pieces), [], pieces.join());
  assert.deepEqual(spelledPieces("ab", [1], ["a", "b"]), []);
});

test("a text that the tokenizer composes first is spelled as it composed it", () => {
  assert.deepEqual(spelled("u\u0308", ["Ã¼"]), ["\xc3\xbc"]);
});
