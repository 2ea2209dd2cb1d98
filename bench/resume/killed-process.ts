/**
 * A run, or a service with a node of its own, that is killed with -9 at any moment and started again, until all of its rollouts are
 * over. Afterwards the logs say what was sampled and how often; they were written before any answer left.
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogLine } from "../../base/schema/session-log.ts";
import { SeededRandom } from "../../practice/model/random.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { countBy } from "../../reconstruct/index.ts";
import { readRollouts, readTrajectories } from "../../rollouts/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../../test/fakes/engines/scripted-engine.ts";
import { type RunningCli, startCli } from "../../test/fakes/processes/cli.ts";
import { chatHarness, runFile } from "../../test/fakes/rollouts/small-task.ts";
import { quietPort } from "../../test/quiet-port.ts";

export type Killed = "run" | "service";

export type KillsOptions = {
  place: string;
  killed: Killed;
  rollouts: number;
  kills: number;
  /** Turns with a command; one more says the last words. */
  turns: number;
  seed: number;
  say?: (text: string) => void;
};

export type KillsAudit = {
  kills: number;
  rollouts: number;
  /** Rollouts without a result, and results too many. */
  lost: number;
  doubled: number;
  /** Rewards -> rollouts: each command must have had its effect once. */
  rewards: Record<string, number>;
  /** How rollouts went on -> rollouts. */
  resumed: Record<string, number>;
  /** Tokens of all calls that ended, and those of calls at a place where one had ended before. */
  sampled_tokens: number;
  again_tokens: number;
  /** Those that a replay gave again, and their share of all that would have been sampled without it. */
  spared_tokens: number;
  spared_share: number;
  /** Calls that a kill cut off while they were sampled: nothing of them can be kept. */
  cut_calls: number;
  /** Sampled tokens that are not trained once. */
  wrongly_trained: number;
};

/** A hundred kills meet sixty rollouts, one at once: each is killed once or twice while it runs, and more often while it waits. */
const rolloutsAtOnce = 1;
/** A turn takes as long as a small model needs for it, so that kills meet calls that are being sampled. */
const turnMs = 400;

export async function killAndGoOn(options: KillsOptions): Promise<KillsAudit> {
  const { place, kills, rollouts, turns, seed, say = () => undefined } = options;
  const random = new SeededRandom(seed);
  await using engine = await ScriptedEngine.start((request) => play(request, turns));
  await writeTask(place, turns);
  await writeFile(
    join(place, "run.yaml"),
    runFile({
      engine: engine.url,
      tasks: [join(place, "task")],
      command: ["node", chatHarness, "{instruction}"],
      more: `concurrency: { run: ${rolloutsAtOnce}, init: 1, post: 1 }\npurpose: train\n`,
    }),
  );
  const process = options.killed === "run" ? killedRun(place, rollouts) : await killedService(place, rollouts);
  await using first = await process.start();
  let running: RunningCli = first;
  for (let done = 0; done < kills; done++) {
    // Each kill has its place among the calls, those that are cut off and asked again included, so that they come over the whole time.
    const calls = rollouts * (turns + 1) + kills * rolloutsAtOnce;
    const due = Math.floor(((done + random.uniform()) / kills) * calls * 0.95);
    await running.until(() => askedCalls(engine) >= due);
    await sleep(random.uniform() * 2 * turnMs);
    await running.kill("SIGKILL");
    say(`kill ${done + 1} of ${kills}, at ${askedCalls(engine)} calls`);
    running = await process.start();
  }
  await process.ends(running);
  const ended = await process.records();
  await running[Symbol.asyncDispose]();
  return audit(ended, { kills, rollouts, sessions: process.sessions });
}

/** Requests that are calls of the harness, as the engine saw them. */
function askedCalls(engine: ScriptedEngine): number {
  return engine.requests.filter(({ tools }) => tools?.length).length;
}

/** Each command adds its turn's number to a file: one that is run twice, or not, is seen by the grader. */
function play({ messages, tools }: WireRequest, turns: number): ScriptedReply {
  const turn = messages.filter(({ role }) => role === "assistant").length;
  if (!tools?.length) return { text: "x" };
  const before = sleep(turnMs);
  if (turn >= turns) return { text: "All of it is written.", before };
  return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: `echo ${turn} >> done.txt; date +%N` }) }], before };
}

async function writeTask(place: string, turns: number): Promise<void> {
  await mkdir(join(place, "task"), { recursive: true });
  const wanted = Array.from({ length: turns }, (_, turn) => `${turn}\\n`).join("");
  const check = `printf '${wanted}' | cmp -s - done.txt && echo '{"reward":1}' || echo '{"reward":0}'`;
  await writeFile(
    join(place, "task", "task.yaml"),
    `task_id: count\ninstruction: "Count."\nlimits: { agent_seconds: 120, grade_seconds: 60, memory_mb: 256, disk_mb: 64 }\ngrader:\n  kind: script\n  command: [sh, -c, ${JSON.stringify(check)}]\n`,
  );
}

/** One result, as run and service tell it alike. */
type Ended = {
  rollout_id: string;
  reward: number | null;
  resume: { how: string; spared_tokens: number } | null;
  trained_tokens: number;
  calls: readonly string[];
};

type KilledProcess = {
  start(): Promise<RunningCli>;
  ends(last: RunningCli): Promise<void>;
  records(): Promise<Ended[]>;
  sessions: string;
};

function killedRun(place: string, rollouts: number): KilledProcess {
  const path = join(place, "run");
  const out = join(place, "runs");
  let begun = false;
  const folder = async (): Promise<string> => join(out, (await readdir(out).catch(() => []))[0] ?? "none");
  return {
    get sessions() {
      return path;
    },
    async start() {
      if (begun) return startCli(["run", "--resume", await folder(), "--json"]);
      begun = true;
      const running = startCli(["run", "-c", join(place, "run.yaml"), "-n", `${rollouts}`, "-o", out, "--json"]);
      await running.until(async () => (await readdir(await folder()).catch((): string[] => [])).includes("rollouts.jsonl"));
      return running;
    },
    async ends(last) {
      const { code, stderr } = await last.ended;
      if (code !== 0) throw new Error(`the run ended with ${code}: ${stderr}`);
    },
    async records() {
      const records = (await readRollouts(await folder())).filter(({ stop_reason }) => stop_reason !== "interrupted");
      const trajectories = (await readTrajectories(await folder())).filter(({ in_loss }) => in_loss);
      return trajectories.map((trajectory) => {
        const { rollout_id, reward } = trajectory;
        const { resume = null } = records.findLast((one) => one.rollout_id === rollout_id && one.attempt === trajectory.attempt) ?? {};
        return { rollout_id: rollout_id ?? "", reward, resume, ...trainedOf(trajectory) };
      });
    },
  };
}

async function killedService(place: string, rollouts: number): Promise<KilledProcess> {
  const port = String(await quietPort());
  const out = join(place, "runs");
  let set: string | null = null;
  const ask = async (method: string, path: string, body?: string): Promise<string> => {
    const { url, token } = JSON.parse(await readFile(join(out, "service/service.json"), "utf8")) as { url: string; token: string };
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
    return text;
  };
  const lines = async () =>
    (await ask("GET", `/sets/${set}/results?payload=trajectory&limit=1000`))
      .split("\n")
      .flatMap((line) => (line ? [JSON.parse(line)] : []));
  return {
    sessions: join(out, "service"),
    async start() {
      const args = ["service", join(place, "task"), "-p", port, "-c", join(place, "run.yaml"), "-o", out, "--json"];
      const running = startCli(args, { cwd: place });
      await running.until(() => running.stdout.includes("\n"));
      if (set !== null) return running;
      set = (JSON.parse(await ask("PUT", "/sets/s", JSON.stringify({ samples: 1, purpose: "train" }))) as { set_id: string }).set_id;
      const groups = Array.from({ length: rollouts }, (_, at) => JSON.stringify({ group_key: `g${at}`, task: "count" }));
      await ask("POST", `/sets/${set}/groups`, groups.join("\n"));
      return running;
    },
    async ends(last) {
      await last.until(async () => (await lines().catch(() => [])).length >= rollouts);
    },
    async records() {
      // A rollout that ten kills set aside has no trajectory, and is lost here.
      const made = (await lines()).filter(({ trajectories: [trajectory] }) => trajectory != null);
      return made.map(({ result, trajectories: [trajectory] }) => ({
        rollout_id: result.rollout_id,
        reward: result.reward,
        resume: result.resume,
        ...trainedOf(trajectory),
      }));
    },
  };
}

function trainedOf({ calls, fidelity }: { calls: readonly { call_id: string }[]; fidelity: { trainable_tokens: number } }) {
  return { trained_tokens: fidelity.trainable_tokens, calls: calls.map(({ call_id }) => call_id) };
}

async function audit(ended: readonly Ended[], { kills, rollouts, sessions }: { kills: number; rollouts: number; sessions: string }) {
  const store = new DiskStore(await sessionsBelow(sessions));
  const places = new Map<string, number[]>();
  let cut_calls = 0;
  for (const id of await store.list()) cut_calls += countPlaces(await store.read(id), places);
  const tokens = [...places.values()];
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  const sampled_tokens = sum(tokens.flat());
  const again_tokens = sum(tokens.map((each) => sum(each.slice(1))));
  const spared_tokens = sum(ended.map(({ resume }) => resume?.spared_tokens ?? 0));
  const distinct = new Set(ended.map(({ rollout_id }) => rollout_id)).size;
  return {
    ...{ kills, rollouts, lost: rollouts - distinct, doubled: ended.length - distinct },
    rewards: countBy(ended, ({ reward }) => String(reward)),
    resumed: countBy(ended, ({ resume }) => resume?.how ?? "not killed"),
    ...{ sampled_tokens, again_tokens, spared_tokens, spared_share: spared_tokens / (sampled_tokens + spared_tokens), cut_calls },
    wrongly_trained: sum(ended.map(({ trained_tokens }) => trained_tokens)) - (sampled_tokens - again_tokens),
  };
}

/** Finds the logs: those of a run are in the only folder below `runs/`. */
async function sessionsBelow(path: string): Promise<string> {
  const entries = await readdir(path).catch((): string[] => []);
  if (entries.includes("sessions")) return join(path, "sessions");
  const runs = join(path, "../runs");
  return join(runs, (await readdir(runs))[0] ?? "none", "sessions");
}

/** Notes the tokens of each finished call at its place: its rollout, and how many turns it follows. Returns calls that have no end. */
function countPlaces(lines: readonly LogLine[], places: Map<string, number[]>): number {
  const [opened] = lines;
  if (opened?.type !== "opened") return 0;
  const depths = new Map<string, number>();
  const open = new Set<string>();
  for (const line of lines) {
    if (line.type === "call_begun") {
      depths.set(line.call_id, line.restored.length + (line.restored_before ?? 0));
      open.add(line.call_id);
    } else if (line.type === "call_finished" && line.sampled_ids !== null && line.error === null) {
      open.delete(line.call_id);
      const place = `${opened.spec.rollout_id} ${depths.get(line.call_id)}`;
      places.set(place, [...(places.get(place) ?? []), line.sampled_ids.length]);
    }
  }
  return open.size;
}
