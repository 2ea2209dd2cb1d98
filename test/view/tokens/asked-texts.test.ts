/** Texts of prompts' tokens: what an engine of the same tokenizer says, and nothing else. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { type PracticeEngine, startPracticeEngine } from "../../../practice/start.ts";
import { encode } from "../../../practice/tokenizer/vocabulary.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import type { SpellingEngine } from "../../../view/tokens/asked-texts.ts";
import { tokenWindow } from "../../../view/tokens/token-window.ts";
import { Vocabulary } from "../../../view/tokens/vocabulary.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli } from "../../fakes/processes/cli.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const scratch = scratchFolder("asked-texts");
const place = { trace: null, turn: null, from: 0 };
const said = "<|im_start|>user\nMend the café 日本.<|im_end|>\n";
const promptIds = encode(said);

let practice: PracticeEngine;
before(async () => {
  practice = await startPracticeEngine({ seed: 3 });
});
after(() => practice[Symbol.asyncDispose]());

/** One call whose prompt is in the practice engine's tokens. */
function sessionOf(tokenizer: string | null, prompt = promptIds): Trajectory {
  const log = new LogBuilder();
  log.call({
    messages: [user("x")],
    prompt,
    says: assistant("ok"),
    sampled: [promptIds[0] as number],
    logprobs: [-1],
    tokenizer: tokenizer ?? "",
  });
  const made = reconstruct(log.entries);
  return tokenizer === null ? { ...made, calls: made.calls.map((call) => ({ ...call, fingerprints: null })) } : made;
}

async function practiceFingerprint(): Promise<string> {
  const engine = engineNamed("vllm").create({ baseUrl: practice.url, apiKey: null });
  try {
    return (await engine.probe(AbortSignal.timeout(30_000))).fingerprints?.tokenizer ?? assert.fail("it shows no tokenizer");
  } finally {
    await engine.close();
  }
}

/** An engine of one token a character. It notes what it is asked. */
function spelling(questions: number[][], fail: () => string | null = () => null): SpellingEngine {
  return {
    baseUrl: "http://127.0.0.1:1",
    async detokenize(_, ids) {
      questions.push(ids);
      const why = fail();
      if (why !== null) throw new Error(why);
      return String.fromCodePoint(...ids);
    },
    spell: async (_, text) => [...text].map((character) => ({ id: character.codePointAt(0) as number, bytes: Buffer.from(character) })),
  };
}

const textsOf = (trajectory: Trajectory, vocabulary: Vocabulary) =>
  tokenWindow(trajectory, place, vocabulary.textOf)?.runs.flatMap(({ tokens }) => tokens.map(({ text }) => text)) ?? [];

async function learn(vocabulary: Vocabulary, trajectory: Trajectory): Promise<boolean> {
  return vocabulary.learn(tokenWindow(trajectory, place, vocabulary.textOf) ?? assert.fail("it has no tokens"));
}

test("`view --engine` shows the texts of a prompt as the practice engine spells them, and keeps them for the next reader", async () => {
  const folder = join(scratch, "run");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "trajectories.jsonl"), `${JSON.stringify(sessionOf(await practiceFingerprint()))}\n`);
  const shown = async (name: string, flags: string[]) => {
    const { code, stderr } = await cli(["view", folder, "--static", join(scratch, name), ...flags]);
    assert.equal(code, 0, stderr);
    return await readFile(join(scratch, name, "tokens-turn-1-0.html"), "utf8");
  };
  assert.match(await shown("without", []), /<u>\d+<\/u>/);
  const page = await shown("asked", ["--engine", practice.url]);
  assert.doesNotMatch(page, /<u>\d+<\/u>/);
  assert.match(page, />&lt;\|im_start\|&gt;<\/i>/);
  assert.doesNotMatch(page, /shown as ids/);
  assert.equal(await shown("kept", []), page, "the run's folder has them now");
});

test("an engine of another tokenizer, and one whose record names none, are asked nothing", async () => {
  for (const [recorded, why] of [
    ["other", /another tokenizer/],
    [null, /does not say which tokenizer/],
  ] as const) {
    const questions: number[][] = [];
    const vocabulary = await Vocabulary.of(join(scratch, "other"), {
      engine: { engine: spelling(questions), model: "m", fingerprint: "same" },
    });
    const trajectory = sessionOf(recorded);
    assert.equal(await learn(vocabulary, trajectory), false);
    assert.deepEqual(questions, []);
    assert.ok(textsOf(trajectory, vocabulary).every((text) => text === null));
    const window = tokenWindow(trajectory, place, vocabulary.textOf) ?? assert.fail();
    assert.match(vocabulary.whyUnknown(window) ?? "", why);
  }
});

test("what an engine was asked stands in a file of its own, by fingerprint, and is not asked again", async () => {
  const folder = join(scratch, "kept-file");
  const questions: number[][] = [];
  const vocabulary = await Vocabulary.of(folder, { engine: { engine: spelling(questions), model: "m", fingerprint: "same" } });
  const trajectory = sessionOf("same", [97, 0x65e5, 98]);
  assert.equal(await learn(vocabulary, trajectory), true);
  assert.deepEqual(textsOf(trajectory, vocabulary).slice(0, 3), ["a", "日", "b"]);
  assert.equal(await learn(vocabulary, trajectory), false);
  assert.equal(questions.length, 1);
  assert.deepEqual(await readdir(join(folder, "vocabulary")), ["same.asked.jsonl"]);
  const later = await Vocabulary.of(folder);
  await later.read();
  assert.deepEqual(textsOf(trajectory, later).slice(0, 3), ["a", "日", "b"]);
  assert.ok(
    textsOf(sessionOf("other", [97]), later).every((text) => text === null),
    "they are of one tokenizer",
  );
});

test("an id that the tokenizer does not give back stays an id, and is asked for at most twice", async () => {
  const questions: number[][] = [];
  const engine: SpellingEngine = { ...spelling(questions), spell: async () => [{ id: 97, bytes: Buffer.from("a") }] };
  const vocabulary = await Vocabulary.of(join(scratch, "stays"), { engine: { engine, model: "m", fingerprint: "same" } });
  const trajectory = sessionOf("same", [97, 98]);
  for (let look = 0; look < 5; look++) await learn(vocabulary, trajectory);
  assert.deepEqual(textsOf(trajectory, vocabulary).slice(0, 2), ["a", null]);
  assert.equal(questions.length, 2);
  const window = tokenWindow(trajectory, place, vocabulary.textOf) ?? assert.fail();
  assert.match(vocabulary.whyUnknown(window) ?? "", /tells no text of theirs/);
});

test("an engine that fails costs no page: the page says why, and the next ones do not wait for it", async () => {
  const questions: number[][] = [];
  const vocabulary = await Vocabulary.of(join(scratch, "failing"), {
    engine: { engine: spelling(questions, () => "it is gone"), model: "m", fingerprint: "same" },
  });
  const trajectory = sessionOf("same", [97]);
  for (let look = 0; look < 3; look++) assert.equal(await learn(vocabulary, trajectory), false);
  assert.equal(questions.length, 1);
  const window = tokenWindow(trajectory, place, vocabulary.textOf) ?? assert.fail();
  assert.equal(vocabulary.whyUnknown(window), "the engine could not be asked for them: it is gone");
});

test("a token longer than any is left out", async () => {
  const engine: SpellingEngine = { ...spelling([]), spell: async () => [{ id: 97, bytes: Buffer.alloc(5_000, 97) }] };
  const vocabulary = await Vocabulary.of(join(scratch, "long"), { engine: { engine, model: "m", fingerprint: "same" } });
  const trajectory = sessionOf("same", [97]);
  await learn(vocabulary, trajectory);
  assert.equal(textsOf(trajectory, vocabulary)[0], null);
});

test("a server that tells no texts, and a flag without its server, are refused in a sentence", async () => {
  const folder = join(scratch, "refused");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "trajectories.jsonl"), `${JSON.stringify(sessionOf("same"))}\n`);
  const refused = async (...flags: string[]) => (await cli(["view", folder, "--static", join(scratch, "never"), ...flags])).stderr;
  assert.match(
    await refused("--engine", practice.url, "--kind", "sglang"),
    /--engine: the sglang server at http\S+ tells no texts of tokens: give --tokenizer/,
  );
  assert.match(await refused("--kind", "vllm"), /--kind is of the server that --engine names/);
});
