/**
 * How often does a replay arrive? Records sessions of each harness, and replays them to every third turn and to their end.
 *
 *     node bench/replay.ts                                     all six harnesses, ten sessions each
 *     node bench/replay.ts --sessions 2 --harness pi,codex     a short run
 *     node bench/replay.ts --turns 5,8 --every 2 --keep here   shorter sessions, more replays; keeps the runs
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startPracticeEngine } from "../practice/start.ts";
import { markdownTable, numbersOf, surroundings } from "./measure.ts";
import { type HandedHarness, hands } from "./replay/hands.ts";
import { countReplays, type HarnessReplays, isReached, measureReplays } from "./replay/measure-replays.ts";

const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "10" },
    harness: { type: "string", default: Object.keys(hands).join(",") },
    turns: { type: "string", default: "10,20" },
    every: { type: "string", default: "3" },
    seed: { type: "string", default: "1" },
    keep: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const { sessions, seed, every } = numbersOf(values, "sessions", "seed", "every");
const [least = 10, most = least] = values.turns.split(",").map(Number);
const isKnown = (name: string): name is HandedHarness => Object.hasOwn(hands, name);
const harnesses = values.harness.split(",").filter(isKnown);
if (harnesses.length < values.harness.split(",").length) throw new Error(`--harness ${values.harness}: known are ${Object.keys(hands)}`);

/** Qwen Code starts with 29 000 tokens. If its window fills up, it compacts its history. */
const maxModelLen = 250_000;
const measured: HarnessReplays[] = [];
const all = values.keep ?? (await mkdtemp(join(tmpdir(), "alidade-replay-")));
for (const harness of harnesses) {
  // A new engine for each harness: its cache holds the first tokens of one harness.
  await using engine = await startPracticeEngine({ seed, maxModelLen });
  const place = join(all, harness);
  const say = (text: string): void => console.error(text);
  const { signal } = new AbortController();
  const turns = { least, most };
  measured.push(await measureReplays({ harness, sessions, seed, turns, every, engineUrl: engine.url, place, signal, say }));
}
if (values.keep === undefined) await rm(all, { recursive: true, force: true });

if (values.json) console.log(JSON.stringify({ ...surroundings(), measured }));
else {
  console.log(JSON.stringify(surroundings()));
  const columns = [
    "",
    "sessions",
    "turns",
    "replays",
    "arrived",
    "`equal`",
    "`values`",
    "`words`",
    "`structure`",
    "same reward at the end",
  ];
  console.log(markdownTable([...columns, "refused", "not recorded"], measured.map(toLine)).join("\n"));
  for (const { replays, not_recorded } of measured) {
    for (const { session, why } of not_recorded) console.log(`${session} was not recorded to its end: ${why}`);
    for (const { session, turn, has_arrived, why_not } of replays)
      if (!has_arrived) console.log(`${session} to ${turn === null ? "the end" : `turn ${turn}`}: ${why_not}`);
  }
}
process.exitCode = isReached(measured) ? 0 : 1;

function toLine(one: HarnessReplays): string[] {
  const { replays, arrived, requests, ended, same_reward } = countReplays(one);
  const lengths = one.sessions.map(({ turns }) => turns);
  const counted = [replays, arrived, requests.equal, requests.values, requests.words, requests.structure];
  const title = [one.harness, one.sessions.length, lengths.length === 0 ? "" : `${Math.min(...lengths)}–${Math.max(...lengths)}`];
  return [...title, ...counted, `${same_reward} of ${ended}`, one.refused.length, one.not_recorded.length].map(String);
}
