import assert from "node:assert/strict";
import { test } from "node:test";
import { tokensOfText } from "../../../../proxy/dialects/openai-responses/text-tokens.ts";

/** A token's text; null for a part of a character. */
const find = (text: string, ...tokens: (string | null)[]) => {
  const told = tokens.map((one) => ({
    id: null,
    text: one ?? "",
    bytes: one === null ? null : [...Buffer.from(one)],
    logprob: -1,
    top: [],
  }));
  const place = tokensOfText(told, text);
  return place && [place.start, place.end];
};

test("the tokens of a text are the run that spells it", () => {
  assert.deepEqual(find("Yes.", "<think>", "No", "</think>", "Yes", ".", "<end>"), [3, 5]);
  // A letter within markup is not a token of its own.
  assert.deepEqual(find("t", "</think>", "t", "<end>"), [1, 2]);
  // A stop string cut the last token.
  assert.deepEqual(find("Yes, STO", "Yes", ", ", "STOP"), [0, 3]);
  assert.equal(find("Yes", "\nYes", "<end>"), null);
  assert.equal(find("Yes"), null);
});

test("a part of a character stands for some of its bytes, and for nothing else", () => {
  assert.deepEqual(find("é!", null, null, "!"), [0, 3]);
  assert.deepEqual(find("a€", "a", null, null, "<end>"), [0, 3]);
  assert.deepEqual(find("😀", null, null, null, "<end>"), [0, 3]);
  assert.deepEqual(find("A", null, null, "A"), [2, 3]);
});

test("a turn that repeats itself is not searched for ever", () => {
  const tokens = Array.from({ length: 20_000 }, () => "a");
  assert.equal(find(`${"a".repeat(19_999)}b`, ...tokens), null);
});
