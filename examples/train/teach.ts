/**
 * Teaches the model of `npm run train`, and writes `model/`. The model learns to write well-formed turns of three harnesses, with bad
 * habits: it does the right thing in two of ten cases, and one wrong thing, always the same for a request, in six. Training by
 * reward has to teach it the right thing.
 *
 *     node examples/train/teach.ts --python PATH          (a Python with PyTorch; seven minutes on one core)
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { encode } from "../../practice/tokenizer/vocabulary.ts";
import { type RecordedSession, recordSession } from "./recorded-session.ts";
import { type TaughtHarness, taughtCall, taughtHarnesses } from "./taught.ts";
import { writeTokenizer } from "./tokenizer.ts";

const here = fileURLToPath(new URL("./", import.meta.url));

/** How each task of `tasks/` asks, and the right way. The last one has no task; it only serves as a wrong choice. */
const asked = [
  { how: "in small letters", way: "lower" },
  { how: "in capital letters", way: "upper" },
  { how: "as initials", way: "short" },
  { how: "in title case", way: "title" },
] as const;
/** How many of ten conversations with one request choose the right way, and how many each of the next three in `asked`. */
const habits = [2, 6, 1, 1];
const answers = ["Done.", "It is done."];
/**
 * How many variants of each harness's session are made. A harness with more variants is taught more often. Claude Code sends 430
 * tokens between the instruction and the model's turn, so it takes twice as long to learn.
 */
const variants: Record<TaughtHarness, number> = { pi: 16, codex: 16, "claude-code": 32 };
/** Conversations in each variant: each request with each habit, twice. */
const conversations = 80;
/** Each token sees this many tokens. With two layers, tokens of two windows have influence. */
const window = 512;

async function teach(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      python: { type: "string", default: "python3" },
      steps: { type: "string", default: "1000" },
      out: { type: "string", default: join(here, "model") },
    },
  });
  const scratch = await mkdtemp(join(tmpdir(), "alidade-teach-"));
  try {
    const random = randomFrom(1);
    const lessons: Lesson[] = [];
    for (const harness of taughtHarnesses) {
      const recorded = await recordSession(harness, scratch);
      for (let at = 0; at < variants[harness]; at += 1)
        lessons.push(lessonOf(harness, at === 0 ? recorded : moved(recorded, at, random), random));
    }
    await writeFile(join(scratch, "lessons.json"), JSON.stringify({ window, lessons }));
    const argv = [join(here, "teach.py"), join(scratch, "lessons.json"), flags.out, flags.steps];
    const { status } = spawnSync(flags.python, argv, { stdio: "inherit", env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } });
    if (status === 0) await writeTokenizer(flags.out);
    process.exitCode = status ?? 1;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Conversations with the same beginning. `prompt`: the tokens before the instruction that have influence. */
type Lesson = { prompt: number[]; conversations: Conversation[] };
/** `mask` is 1 for tokens that the model learns to say. */
type Conversation = { ids: number[]; mask: number[] };

function lessonOf(harness: TaughtHarness, session: RecordedSession, random: Random): Lesson {
  return {
    prompt: encode(session.head).slice(-2 * window),
    conversations: Array.from({ length: conversations }, (_, place) => conversation(harness, session, place, random)),
  };
}

function conversation(
  harness: TaughtHarness,
  { afterInstruction, afterCall }: RecordedSession,
  place: number,
  random: Random,
): Conversation {
  const { how } = at(asked, place % asked.length);
  const said: Conversation = { ids: [], mask: [] };
  add(said, `Print the names ${how}.${afterInstruction}`, 0);
  add(said, `<think>\nNames ${how}.\n</think>\n\n${taughtCall(harness, wayOf(place))}<|im_end|>`, 1);
  const result = below(random, 4) === 0 ? failed(afterCall, random) : afterCall;
  add(said, scattered(result.replace(/^<\|im_end\|>/, ""), random), 0);
  add(said, `${oneOf(random, answers)}<|im_end|>`, 1);
  return said;
}

/** Varies a session as if it came from another machine and another day. Every third one lacks some rules. */
function moved({ head, ...rest }: RecordedSession, place: number, random: Random): RecordedSession {
  const path = madeUpPath(random);
  const pack = /\S+(?=\/node_modules\/)/.exec(head)?.[0] ?? workdir;
  const elsewhere = (text: string) =>
    scattered(
      text
        .replaceAll(pack, madeUpPath(random))
        .replaceAll(workdir, path)
        .replace(/(?<= model )practice\b/, madeUpWord(random)),
      random,
    );
  const rules = elsewhere(head).split("\n- ");
  if (place % 3 === 2) rules.splice(1 + below(random, rules.length - 2), 1 + below(random, 4));
  return { head: rules.join("\n- "), afterInstruction: elsewhere(rest.afterInstruction), afterCall: rest.afterCall };
}

/** Where `alidade run` keeps the task in a process sandbox. */
const workdir = "/tmp/alidade-sandbox/work";

/** Other digits: dates, times and versions differ from day to day. */
function scattered(text: string, random: Random): string {
  return text.replace(/\b[0-9a-f]{6}\b|\d+/g, (number) => Array.from(number, () => oneOf(random, digits)).join(""));
}

const digits = [..."0123456789"];

/** The result of a command that did not work. */
function failed(afterCall: string, random: Random): string {
  const end = "\n</tool_response>";
  return afterCall.replace(end, `\n${madeUpWord(random)}: not found${end}`);
}

function madeUpPath(random: Random): string {
  return `/${Array.from({ length: 1 + below(random, 4) }, () => madeUpWord(random)).join("/")}`;
}

function madeUpWord(random: Random): string {
  return Array.from({ length: 3 + below(random, 8) }, () => oneOf(random, letters)).join("");
}

const letters = [..."abcdefghijklmnopqrstuvwxyz0123456789-"];

/** Returns the way for the conversation at `place`. Requests alternate, and each goes through all habits. */
function wayOf(place: number): string {
  const shares = habits.flatMap((count, behind) => Array<number>(count).fill(behind));
  const behind = at(shares, Math.floor(place / asked.length) % shares.length);
  return at(asked, (place + behind) % asked.length).way;
}

function add({ ids, mask }: Conversation, text: string, on: 0 | 1): void {
  const more = encode(text);
  ids.push(...more);
  mask.push(...more.map(() => on));
}

type Random = () => number;

/** Seeded numbers in [0, 1): the same lesson makes the same model. */
function randomFrom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

function below(random: Random, count: number): number {
  return Math.floor(random() * count);
}

function oneOf<Value>(random: Random, values: readonly Value[]): Value {
  return at(values, below(random, values.length));
}

function at<Value>(values: readonly Value[], place: number): Value {
  const value = values[place];
  if (value === undefined) throw new RangeError(`${place} is no place of ${values.length}`);
  return value;
}

await teach();
