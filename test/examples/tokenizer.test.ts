/** The tokenizer files of the taught model: transformers makes the same ids, texts and prompts of them as the embedded engine. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { taughtModel } from "../../examples/train/taught.ts";
import { writeTokenizer } from "../../examples/train/tokenizer.ts";
import { type ChatMessage, type ChatTool, renderChat } from "../../practice/template.ts";
import { decodeBytes, encode, endOfTurn, TextStream, vocabularySize } from "../../practice/tokenizer/vocabulary.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root } from "../fakes/processes/cli.ts";
import { consumersPlace } from "../interop/consumers/place.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("tokenizer");

test("the files in the repository are those that the vocabulary gives", async () => {
  const folder = join(scratch, "written");
  await mkdir(folder);
  await writeTokenizer(folder);
  for (const name of ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
    assert.equal(await readFile(join(taughtModel, name), "utf8"), await readFile(join(folder, name), "utf8"), name);
});

test("transformers makes the same ids, texts and prompts", async (t) => {
  if (!(await need(t, "consumers"))) return;
  const texts = [...(await sources()), ...runs, ...fc.sample(anyText, { seed: 1, numRuns: 3_000 })];
  const ids = [...texts.map(encode), ...fc.sample(anyIds, { seed: 2, numRuns: 1_000 })];
  const chats = fc.sample(chat, { seed: 3, numRuns: 1_000 });
  const turns = asSampled.map(({ message }) => ({ messages: [{ role: "assistant", ...message }], tools: [], generate: false }));
  const theirs = await byTransformers(t, { folder: taughtModel, texts, ids, chats: [...chats, ...turns] });
  assert.equal(theirs.end, endOfTurn);
  for (const [at, text] of texts.entries()) assert.deepEqual(theirs.encoded[at], encode(text), JSON.stringify(text).slice(0, 2_000));
  for (const [at, some] of ids.entries()) {
    assert.equal(theirs.decoded[at], new TextDecoder("utf-8", { ignoreBOM: true }).decode(decodeBytes(some)), `${some}`);
    assert.equal(theirs.shown[at], shown(some), `${some}`);
  }
  for (const [at, { messages, tools, generate }] of chats.entries())
    assert.equal(theirs.rendered[at], renderChat(messages, tools, generate));
  for (const [at, { sampled }] of asSampled.entries())
    assert.equal(theirs.rendered[chats.length + at], `<|im_start|>assistant\n${sampled}<|im_end|>\n`);
  t.diagnostic(
    `${texts.length} texts of ${theirs.encoded.flat().length} tokens, ${ids.length} lists of ids, ${chats.length} conversations`,
  );
});

function shown(ids: readonly number[]): string {
  const stream = new TextStream();
  return ids.map((id) => stream.feed(id)).join("") + stream.finish();
}

/** Code and prose, as prompts have it. None names the tokens of pictures: the files leave them out. */
async function sources(): Promise<string[]> {
  const files = ["practice/tokenizer/bpe.ts", "practice/generation.ts", "examples/train/llama.py", "docs/learning.md", "package.json"];
  return Promise.all(files.map((file) => readFile(join(root, file), "utf8")));
}

const names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>"];

/** Longer than a word may be. */
const runs = [" ", "a", "!", "\n", "\t", "\t ", "é", "漢", "\r\n", "7", " a", "\u00a0", ...names].flatMap((unit) =>
  [47, 48, 49, 97, 1_000].flatMap((count) => [unit.repeat(count), `x${unit.repeat(count)}y`, `${unit.repeat(count)} !`]),
);

/** Pieces whose neighbours decide where a word ends, and halves of names. */
const piece = fc.oneof(
  fc.constantFrom(
    ...names,
    "<|im_en",
    "<think",
    "tool_call>",
    "</",
    "|>",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\n\n",
    "0",
    "12",
    ".",
    "--",
    "a",
    "Z",
  ),
  fc.constantFrom(
    " the",
    "return",
    "é",
    "ß",
    "漢字",
    "🙂",
    "\u0000",
    "\u007f",
    "\u0085",
    "\u00a0",
    "\u00ad",
    "\u2028",
    "\ufeff",
    "Ġ",
    "Ċ",
    "ĉ",
  ),
  fc.string({ unit: "binary", maxLength: 6 }),
);

const anyText = fc.oneof(
  fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join("")),
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.string({ unit: "grapheme", maxLength: 200 }),
);

const anyIds = fc.array(fc.nat(vocabularySize - 1), { maxLength: 60 });

const saying = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("", "\n", " line\r\nline ", '{"a": "</tool_call>"}'));
/** Line breaks at the ends of what a model says are those of a parser: see `asSampled`. */
const said = saying.filter((text) => !/^\n|\n$/.test(text));
const contentOf = (text: fc.Arbitrary<string>) =>
  fc.oneof(text, fc.constant(null), fc.array(fc.record({ type: fc.constant("text"), text }), { maxLength: 3 }));
/** No fractions: Python and JavaScript write some of them in two ways. */
const values = fc.dictionary(fc.string(), fc.oneof(saying, fc.integer(), fc.boolean(), fc.constant(null)), { maxKeys: 3 });
const call = fc.record({
  type: fc.constant("function"),
  function: fc.record({
    name: saying,
    arguments: fc.oneof(
      values.map((value) => JSON.stringify(value)),
      fc.constantFrom(null, "{bad"),
    ),
  }),
});
const message: fc.Arbitrary<ChatMessage> = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer", "user", "tool"), content: contentOf(saying) }),
  fc.record(
    {
      role: fc.constant("assistant" as const),
      content: contentOf(said.filter((text) => text !== "")),
      reasoning: fc.option(said),
      reasoning_content: fc.option(said),
      tool_calls: fc.option(fc.array(call, { maxLength: 2 })),
    },
    { requiredKeys: ["role"] },
  ),
);
const tool: fc.Arbitrary<ChatTool> = fc.record({
  type: fc.constant("function"),
  function: fc.record({ name: saying, description: saying, parameters: values }, { requiredKeys: ["name"] }),
});
const chat = fc.record({
  messages: fc.array(message, { minLength: 1, maxLength: 5 }),
  tools: fc.array(tool, { maxLength: 2 }),
  generate: fc.boolean(),
});

/** What vLLM's parsers make of a sampled turn, as it comes back in the next request. */
const asSampled = [
  {
    sampled: '<think>\nA.\n</think>\n\n<tool_call>\n{"name": "bash", "arguments": {"command": "a é"}}\n</tool_call>',
    message: { content: null, reasoning: "\nA.\n", tool_calls: [{ function: { name: "bash", arguments: { command: "a é" } } }] },
  },
  { sampled: "<think>\nA.\n</think>\n\nDone.", message: { content: "\n\nDone.", reasoning: "\nA." } },
  { sampled: "<think>\n</think>\n\nDone.", message: { content: "\n\nDone.", reasoning: "\n" } },
  {
    sampled: 'I look.\n<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>',
    message: { content: "I look.\n", tool_calls: [{ function: { name: "ls", arguments: {} } }] },
  },
];

type Asked = {
  folder: string;
  texts: string[];
  ids: number[][];
  chats: { messages: unknown[]; tools: ChatTool[]; generate: boolean }[];
};

const Found = z.strictObject({
  encoded: z.array(z.array(z.number())),
  decoded: z.array(z.string()),
  shown: z.array(z.string()),
  rendered: z.array(z.string()),
  end: z.number(),
});

async function byTransformers(t: TestContext, asked: Asked): Promise<z.infer<typeof Found>> {
  const argv = ["-W", "ignore", join(root, "test/examples/tokenizer.py")];
  const env = { ...process.env, CUDA_VISIBLE_DEVICES: "", HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" };
  const child = spawn(join(consumersPlace(), "venv/bin/python"), argv, { env, signal: t.signal, stdio: ["pipe", "pipe", "pipe"] });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.setEncoding("utf8").on("data", (part: string) => void out.push(part));
  child.stderr.setEncoding("utf8").on("data", (part: string) => void err.push(part));
  child.stdin.end(JSON.stringify(asked));
  const [code] = await once(child, "close");
  assert.equal(code, 0, err.join("").slice(-4_000));
  return Found.parse(JSON.parse(out.join("")));
}
