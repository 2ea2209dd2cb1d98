/** What a tokenizer reads as one token wherever it stands is found by asking it, and parted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelTokenizer } from "../../../graders/grader.ts";
import { barred, partedLines } from "../../../graders/judge/fence.ts";
import { MarkFinder, withoutMarks } from "../../../graders/judge/marks.ts";

/** As the templates of 25 families of models have them. */
const marks = [
  "[|system|]",
  "[|endofturn|]",
  "<|user|>",
  "<|observation|>",
  "[gMASK]",
  "<sop>",
  "<seed:bos>",
  "<seed:think>",
  "]~b]",
  "[e~[",
  "<beginning_of_sentence>",
  "<SPECIAL_12>",
  "<extra_id_1>",
  "<BOS_TOKEN>",
  "<|START_OF_TURN_TOKEN|>",
  "<reserved_106>",
  "<start_of_turn>",
  "<|eot_id|>",
  "[INST]",
  "[/INST]",
  "[TOOL_CALLS]",
  "<｜User｜>",
  "<｜end▁of▁sentence｜>",
  "<|im_start|>",
  "<think>",
  "<eoh>",
  "<|plugin|>",
  "<|channel|>",
  "<|im_middle|>",
  "<|hy_User|>",
  "<mask:1>",
  "[CLS]",
  ">>TITLE<<",
  "<PRE>",
  "<fim_prefix>",
  "<s>",
  "</s>",
  "<|reserved token|>",
  "USERTURN",
  "Human:",
];

type Ways = { decoded?: (mark: string) => string; reads?: (text: string) => string };

/**
 * Its words are cut as merges cut them: by three letters, two digits or two signs from the left, with a space before them.
 * `decoded`: how it writes a mark; `reads`: what it makes of a text first.
 */
function tokenizerWith(specials: readonly string[], { decoded = (mark) => mark, reads = (text) => text }: Ways = {}): ModelTokenizer {
  const texts: string[] = [...specials];
  const ids = new Map(texts.map((text, id) => [text, id]));
  const escaped = specials.toSorted((a, b) => b.length - a.length).map((mark) => mark.replaceAll(/[[\]|/\\^$.*+?(){}]/g, "\\$&"));
  const special = new RegExp(escaped.join("|") || "(?!)", "gu");
  const words = (text: string) => text.match(/ ?\p{L}{1,3}| ?\p{N}{1,2}| ?[^\s\p{L}\p{N}]{1,2}|\s/gu) ?? [];
  const idOf = (text: string) => {
    const id = ids.get(text) ?? texts.push(text) - 1;
    ids.set(text, id);
    return id;
  };
  return {
    async tokenize(text) {
      const read = reads(text);
      const found = [...read.matchAll(special)].map(([mark]) => mark);
      return read
        .split(special)
        .flatMap((part, at) => [...words(part).map(idOf), ...(at < found.length ? [idOf(found[at] as string)] : [])]);
    },
    async detokenize(tokens) {
      return tokens.map((id) => (id < specials.length ? decoded(texts[id] as string) : texts[id])).join("");
    },
  };
}

const signal = AbortSignal.timeout(300_000);
const idsOf = async (tokenizer: ModelTokenizer, text: string) => new Set(await tokenizer.tokenize(text, signal));

async function left(tokenizer: ModelTokenizer, text: string): Promise<string[]> {
  const ids = await idsOf(tokenizer, text);
  return marks.filter((_, id) => ids.has(id));
}

const speech = barred(marks.map((mark) => `x${mark}system\n${mark} and ${mark}${mark}\n ${mark}`).join("\n"));

test("marks of any family are found without a list of them, wherever they stand, and none is left", async () => {
  const tokenizer = tokenizerWith(marks);
  assert.equal((await left(tokenizer, speech)).length, marks.length);
  assert.deepEqual(await left(tokenizer, await withoutMarks(speech, [tokenizer], signal)), []);
});

test("a mark inside of another one, and one that a parted one leaves, are parted too", async () => {
  const nested = ["<|a<s>b|>", "<s>", "|>|>", "<|a"];
  const tokenizer = tokenizerWith(nested);
  const ids = await idsOf(tokenizer, await withoutMarks("| <|a<s>b|>|>|> <<s>s>", [tokenizer], signal));
  assert.deepEqual(
    nested.filter((_, id) => ids.has(id)),
    [],
  );
});

test("a tokenizer that writes ▁ as a space, or a space before its marks, hides none", async () => {
  for (const decoded of [(mark: string) => mark.replaceAll("▁", " "), (mark: string) => ` ${mark}`]) {
    const tokenizer = tokenizerWith(marks, { decoded });
    assert.deepEqual(await left(tokenizer, await withoutMarks(speech, [tokenizer], signal)), []);
  }
});

test("a mark in characters that the tokenizer reads as others is parted, and one that never is cannot be shown", async () => {
  const folding = tokenizerWith(marks, { reads: (text) => text.normalize("NFKC") });
  const wide = "| ＜ｔｈｉｎｋ＞ and ＜s＞";
  assert.deepEqual(await left(folding, wide), ["<think>", "<s>"]);
  assert.deepEqual(await left(folding, await withoutMarks(wide, [folding], signal)), []);
  const lower = tokenizerWith(["<think>"], { reads: (text) => text.toLowerCase() });
  await assert.rejects(withoutMarks("| <THINK>", [lower], signal), { code: "grader_error", message: /cannot be parted/ });
});

test("what no tokenizer takes for a mark stays as it is: prose, code and numbers", async () => {
  const plain = barred("Return `a[0] < b` where x != 12.5;\n\tfor (const [k, v] of entries) { f(k, v); }\n日本語のテキスト, naïve.");
  const tokenizer = tokenizerWith(marks);
  assert.equal(await withoutMarks(plain, [tokenizer], signal), plain);
  assert.deepEqual(await new MarkFinder(tokenizer, signal).marksIn(plain), []);
});

test("each engine that may be asked has its say, and one without a tokenizer has a space behind each bracket", async () => {
  const [one, other] = [tokenizerWith(["<|one|>"]), tokenizerWith(["[other]"])];
  const engines = [
    { engine: "a", tokenizer: one },
    { engine: "b", tokenizer: other },
  ];
  const sampler = (tokenizers: { engine: string; tokenizer: ModelTokenizer | null }[]) => ({
    url: "",
    key: "",
    session_id: "",
    model: "m",
    tokenizers: () => tokenizers,
  });
  const both = await partedLines("<|one|> [other] (x)", sampler(engines), "m", signal);
  assert.deepEqual(both, { lines: "| <|o ne|> [ot her] (x)", parted_by: "tokenizer" });
  const silent = await partedLines(marks.join("\n"), sampler([...engines, { engine: "c", tokenizer: null }]), "m", signal);
  assert.match(silent.parted_by, /^a space behind each bracket: c has no tokenizer that can be asked$/);
  // Words without a bracket are told from others by a tokenizer alone.
  assert.deepEqual(await left(tokenizerWith(marks), silent.lines), ["USERTURN", "Human:"]);
});
