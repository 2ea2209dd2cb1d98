/**
 * Records sessions of a harness, and replays each session to every third turn and to its end. A script decides what the model
 * says. Everything runs in process sandboxes, with the code of the verbs.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { newId } from "../../base/schema/ids.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { ReplayClass } from "../../base/schema/session-log.ts";
import { makeReplays } from "../../cli/commands/replay/make-replays.ts";
import { executeRun } from "../../cli/commands/run.ts";
import { loadConfig } from "../../cli/load-config.ts";
import { type SessionRecording, toRecording, turnsOfMain, turnsToForkAt } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { RunFolder } from "../../rollouts/index.ts";
import { type Asked, startForcedEngine } from "./forced-engine.ts";
import { type HandedHarness, hands, turnText } from "./hands.ts";
import { drawSession, type SessionScript, type Turns } from "./session-script.ts";

export type MeasureOptions = {
  harness: HandedHarness;
  sessions: number;
  seed: number;
  turns: { least: number; most: number };
  /** Replays to every third turn if 3; always to the end too. */
  every: number;
  /** URL of a practice engine. */
  engineUrl: string;
  /** Folder for the tasks and runs. */
  place: string;
  signal: AbortSignal;
  say: (text: string) => void;
};

/** One replay. `turn`: null if it goes to the end. `difference`: the first one of the request class that differs most. */
export type Replayed = {
  session: string;
  turn: number | null;
  has_arrived: boolean;
  classes: Record<string, number>;
  difference: string | null;
  why_not: string | null;
  reward: number | null;
};

export type HarnessReplays = {
  harness: HandedHarness;
  /** Sessions recorded to their end. `turns` counts the main agent's turns, `calls` the calls of all agents. */
  sessions: { session: string; turns: number; calls: number; agents: number; reward: number | null }[];
  /** Sessions that failed or have no reward. They are not replayed. */
  not_recorded: { session: string; why: string }[];
  replays: Replayed[];
  /** Turns to which `replay` refuses to go, because other calls ran side by side with them. */
  refused: { session: string; turn: number }[];
};

export async function measureReplays(options: MeasureOptions): Promise<HarnessReplays> {
  const { harness, place, signal, say } = options;
  const scripts = new Map(
    Array.from({ length: options.sessions }, (_, index) => {
      const name = `${harness}-${index}`;
      const { agents } = hands[harness];
      return [name, drawSession({ name, seed: options.seed * 1000 + index, agents, turns: options.turns })] as const;
    }),
  );
  const tasks = await Promise.all([...scripts].map(([name, script]) => writeTask(join(place, name), name, script)));
  await using engine = await startForcedEngine(options.engineUrl, (asked) => nextTurn(harness, scripts, asked));
  const config = await loadConfig({
    env: {},
    overrides: {
      ...{ engine: { url: engine.url }, harness, tasks, samples: 1, retries: 0, purpose: "eval" },
      ...{ sandbox: "process", unsafe_host: true, concurrency: { init: 1, run: 1, post: 1 } },
    },
  });
  const path = join(place, "recorded");
  const records = await executeRun({ config, path, runId: newId("run").slice(0, 11), signal, onProgress: () => undefined });
  const measured: HarnessReplays = { harness, sessions: [], not_recorded: [], replays: [], refused: [] };
  for (const record of records) {
    const session = record.task_id;
    const why = whyNotWhole(record);
    if (why !== null || record.session_id === null) {
      measured.not_recorded.push({ session, why: why ?? "it has no session" });
      continue;
    }
    const recording = toRecording(record.session_id, await new DiskStore(RunFolder.sessions(path)).read(record.session_id));
    const turns = turnsOfMain(recording);
    measured.sessions.push({ session, turns: turns.length, ...countsOf(recording), reward: record.verdict?.reward ?? null });
    const chosen = turns.slice(0, -1).filter((_, index) => (index + 1) % options.every === 0);
    const possible = turnsToForkAt(recording);
    measured.refused.push(...chosen.filter((turn) => !possible.includes(turn)).map((turn) => ({ session, turn })));
    const wanted = [...chosen.filter((turn) => possible.includes(turn)), null];
    const flags = { run: path, out: join(place, "replays"), words: "go_on" as const };
    const made = await makeReplays(record.rollout_id, { verb: "replay", flags, wanted: { turns: wanted, sampled: null } }, signal);
    measured.replays.push(...made.records.map((one, index) => toReplayed(one, session, wanted[index] ?? null)));
    const arrived = measured.replays.filter((one) => one.session === session && one.has_arrived).length;
    say(`${session}: ${turns.length} turns; ${arrived} of ${wanted.length} replays arrived`);
  }
  return measured;
}

function whyNotWhole({ error, stop_reason, verdict, output_tail }: RolloutRecord): string | null {
  if (error !== null) return `${error.code}: ${error.message}`;
  return verdict?.reward == null ? `it has no reward (${stop_reason}): ${output_tail?.slice(-200)}` : null;
}

function countsOf({ calls }: SessionRecording): { calls: number; agents: number } {
  return { calls: calls.length, agents: new Set(calls.map(({ call }) => call.begun.agent)).size };
}

function toReplayed({ replay, error, verdict, stop_reason }: RolloutRecord, session: string, turn: number | null): Replayed {
  const classes = replay?.classes ?? {};
  const has_arrived = replay?.how === "arrived" && (classes.structure ?? 0) === 0;
  const why_not = has_arrived ? null : (error?.message ?? `it ended before its turn (${stop_reason})`);
  return { session, turn, has_arrived, classes, difference: replay?.difference ?? null, why_not, reward: verdict?.reward ?? null };
}

/** Writes a task. Its reward is the share of right units; the background process counts as one more unit. */
async function writeTask(folder: string, name: string, { instruction, files, factors }: SessionScript): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, "files", path)), { recursive: true });
    await writeFile(join(folder, "files", path), text);
  }
  const grade = `import { readFileSync } from "node:fs";
let right = 0;
for (const [index, factor] of ${JSON.stringify(factors)}.entries()) {
  const unit = await import(process.cwd() + "/src/unit-" + index + ".mjs").catch(() => ({}));
  if (unit["unit" + index]?.(7) === 7 * factor) right++;
}
if (readFileSync("job.log", "utf8").startsWith("ready\\n")) right++;
console.log(JSON.stringify({ reward: right / ${factors.length + 1} }));`;
  const task = {
    ...{ task_id: name, instruction, environment: { files: "files", mounts: { "/opt/alidade/node": "alidade:node" } } },
    limits: { agent_seconds: 600, grade_seconds: 60, memory_mb: 2048, disk_mb: 256 },
    grader: { kind: "script", command: ["node", "--input-type=module", "-e", grade] },
  };
  await writeFile(join(folder, "task.yaml"), JSON.stringify(task));
  return folder;
}

/** Returns the model's answer: the next turn of the agent, or a title for a side call. */
function nextTurn(harness: HandedHarness, scripts: ReadonlyMap<string, SessionScript>, { messages, tools }: Asked): string {
  if (!tools?.length) return "A title";
  const first = messages.findIndex(({ role }) => role === "assistant");
  const asked = messages.slice(0, first === -1 ? undefined : first).filter(({ role }) => role === "user");
  const turns = turnsFor(scripts, asked.map(({ content }) => textOf(content)).join("\n"));
  const steps = turns[messages.filter(({ role }) => role === "assistant").length];
  if (steps === undefined) return "All of it is done.";
  const [only] = steps;
  if (only?.do === "report" && !tools.some(({ function: { name } }) => name === "complete_task")) return only.text;
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
  return turnText(harness, steps, { results, at: (path) => join(tmpdir(), "alidade-sandbox/work", path) });
}

function turnsFor(scripts: ReadonlyMap<string, SessionScript>, text: string): Turns {
  for (const [name, { turns, agents }] of scripts) {
    const part = Object.keys(agents).find((one) => text.includes(`${one}.`));
    if (part !== undefined) return agents[part] ?? [];
    if (text.includes(`the units of ${name}:`)) return turns;
  }
  return [];
}

function textOf(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** Counts of one harness's replays, for the table. */
export type ReplayCounts = {
  replays: number;
  arrived: number;
  requests: Record<ReplayClass, number>;
  ended: number;
  same_reward: number;
};

export function countReplays({ sessions, replays }: Pick<HarnessReplays, "sessions" | "replays">): ReplayCounts {
  const sum = (name: ReplayClass): number => replays.reduce((total, { classes }) => total + (classes[name] ?? 0), 0);
  const recorded = new Map(sessions.map(({ session, reward }) => [session, reward]));
  const ends = replays.filter(({ turn }) => turn === null);
  return {
    replays: replays.length,
    arrived: replays.filter(({ has_arrived }) => has_arrived).length,
    requests: { equal: sum("equal"), values: sum("values"), words: sum("words"), structure: sum("structure") },
    ended: ends.length,
    same_reward: ends.filter(({ session, reward }) => reward !== null && reward === recorded.get(session)).length,
  };
}

/** Smallest allowed shares. `arrived`: of wanted turns. `same_reward`: of replays to the end. */
const bounds = { arrived: 0.9, same_reward: 0.95 };

/**
 * True if all sessions were recorded to their end, at least one was replayed to its end, and both shares are large enough over all
 * harnesses. A refused turn counts as a wanted turn without an arrival.
 */
export function isReached(measured: readonly HarnessReplays[]): boolean {
  const { replays, arrived, ended, same_reward } = countReplays({
    sessions: measured.flatMap((one) => one.sessions),
    replays: measured.flatMap((one) => one.replays),
  });
  if (ended === 0 || measured.some(({ not_recorded }) => not_recorded.length > 0)) return false;
  const wanted = replays + measured.flatMap((one) => one.refused).length;
  return arrived / wanted >= bounds.arrived && same_reward / ended >= bounds.same_reward;
}
