/**
 * Teaches the model of `npm run train`, and writes `model/`. The model learns to write well-formed turns of Pi, with bad habits:
 * it does the right thing in three of ten cases, and one wrong thing, always the same for a request, in five. Training by reward
 * has to teach it the right thing.
 *
 *     node examples/train/teach.ts --python PATH          (a Python with PyTorch; ten minutes on one core)
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { decodeBytes, encode } from "../../practice/tokenizer/vocabulary.ts";
import { writeTokenizer } from "./tokenizer.ts";

const here = fileURLToPath(new URL("./", import.meta.url));
const root = fileURLToPath(new URL("../../", import.meta.url));

/** How each task of `tasks/` asks, and the right way. The last one has no task; it only serves as a wrong choice. */
const asked = [
  { how: "in small letters", way: "lower" },
  { how: "in capital letters", way: "upper" },
  { how: "as initials", way: "short" },
  { how: "in title case", way: "title" },
] as const;
/** How often the model chooses the right way, and each of the next three ways in `asked`. */
const habits = [0.3, 0.5, 0.1, 0.1];
const answers = ["Done.", "It is done."];
const conversations = 1_200;
const prompts = 16;

const Trajectory = z.looseObject({
  nodes: z.array(z.looseObject({ node_id: z.string(), parent_id: z.string().nullable(), token_ids: z.array(z.number()) })),
  calls: z.array(z.looseObject({ prompt_node_id: z.string(), prompt_length: z.number() })).min(1),
});

async function teach(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      python: { type: "string", default: "python3" },
      steps: { type: "string", default: "400" },
      out: { type: "string", default: join(here, "model") },
    },
  });
  const scratch = await mkdtemp(join(tmpdir(), "alidade-teach-"));
  try {
    const system = systemTurn(await promptOfPi(scratch));
    const random = randomFrom(1);
    const lesson = {
      prompts: Array.from({ length: prompts }, (_, at) => encode(at === 0 ? system : altered(system, at, random))),
      conversations: Array.from({ length: conversations }, () => conversation(random)),
    };
    await writeFile(join(scratch, "lesson.json"), JSON.stringify(lesson));
    const argv = [join(here, "teach.py"), join(scratch, "lesson.json"), flags.out, flags.steps];
    const { status } = spawnSync(flags.python, argv, { stdio: "inherit", env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } });
    if (status === 0) await writeTokenizer(flags.out);
    process.exitCode = status ?? 1;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Records what Pi sends before the first turn of a session. The embedded engine answers, with random weights. */
async function promptOfPi(scratch: string): Promise<string> {
  const argv = ["run", "--engine", "practice", "--harness", "pi", "--sandbox", "process", "--unsafe-host", "-n", "1", "-o", scratch];
  const done = spawnSync(process.execPath, [join(root, "bin/alidade.js"), ...argv, join(here, "tasks/initials")], { encoding: "utf8" });
  const [run] = (await readdir(scratch)).filter((name) => name.startsWith("run"));
  if (run === undefined) throw new Error(`alidade run recorded nothing: ${done.stderr.slice(-2_000)}`);
  const [line = ""] = (await readFile(join(scratch, run, "trajectories.jsonl"), "utf8")).split("\n");
  const { nodes, calls } = Trajectory.parse(readJson(line));
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const ids: number[] = [];
  for (let node = byId.get(calls[0]?.prompt_node_id ?? ""); node; node = byId.get(node.parent_id ?? "")) ids.unshift(...node.token_ids);
  return new TextDecoder().decode(decodeBytes(ids.slice(0, calls[0]?.prompt_length)));
}

function systemTurn(prompt: string): string {
  return prompt.slice(0, prompt.indexOf("<|im_start|>user"));
}

/** Varies a prompt as if it came from another machine: other paths, and every third prompt lacks some rules. */
function altered(system: string, place: number, random: Random): string {
  const pack = /\S+(?=\/node_modules\/)/.exec(system)?.[0] ?? "";
  const workdir = /<cwd>\s*(\S+)\s*<\/cwd>/.exec(system)?.[1] ?? "";
  const moved = system.replaceAll(pack, madeUpPath(random)).replace(workdir, madeUpPath(random));
  if (place % 3 !== 2) return moved;
  const rules = moved.split("\n- ");
  rules.splice(1 + below(random, rules.length - 2), 1 + below(random, 4));
  return rules.join("\n- ");
}

function madeUpPath(random: Random): string {
  return `/${Array.from({ length: 1 + below(random, 4) }, () => madeUpWord(random)).join("/")}`;
}

function madeUpWord(random: Random): string {
  return Array.from({ length: 3 + below(random, 8) }, () => oneOf(random, letters)).join("");
}

const letters = [..."abcdefghijklmnopqrstuvwxyz0123456789-"];

/** `mask` is 1 for tokens that the model learns to say. */
type Conversation = { ids: number[]; mask: number[] };

function conversation(random: Random): Conversation {
  const place = below(random, asked.length);
  const { how } = at(asked, place);
  const said: Conversation = { ids: [], mask: [] };
  const call = callOf(wayOf(place, random));
  const answer = oneOf(random, answers);
  add(said, `<|im_start|>user\nPrint the names ${how}.<|im_end|>\n<|im_start|>assistant\n`, 0);
  add(said, `<think>\nNames ${how}.\n</think>\n\n<tool_call>\n${call}\n</tool_call><|im_end|>`, 1);
  const failure = `${madeUpWord(random)}: not found`;
  const result = oneOf(random, ["(no output)", "(no output)", "(no output)", failure]);
  add(said, `\n<|im_start|>tool\n<tool_response>\n${result}\n</tool_response><|im_end|>\n<|im_start|>assistant\n`, 0);
  add(said, `${answer}<|im_end|>`, 1);
  return said;
}

function callOf(way: string): string {
  return `{"name": "bash", "arguments": {"command": "sed -i s/plain/${way}/ style.js"}}`;
}

function wayOf(place: number, random: Random): string {
  let rest = random();
  let behind = 0;
  for (const share of habits) {
    if (rest < share) break;
    rest -= share;
    behind += 1;
  }
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
