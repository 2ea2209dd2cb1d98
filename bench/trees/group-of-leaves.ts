/**
 * Runs groups of rollouts on one engine, as trees or as chains, and counts the results. Sampled tokens are counted in the session
 * logs, and loss weights in the exported rows.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { currentOwner } from "../../base/host/owner.ts";
import type { Branching } from "../../base/schema/branching.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { engineNamed } from "../../engines/registry.ts";
import { flat } from "../../exporters/flat.ts";
import { commandHarness } from "../../harnesses/command.ts";
import { HarnessProxy, toRecording } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { FlatRow } from "../../reconstruct/index.ts";
import { branchingRegistry } from "../../rollouts/branching/index.ts";
import { makeSlots, RunFolder, readTrajectories, runTasks } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { exported } from "../../test/fakes/records/exported.ts";

const agent = join(import.meta.dirname, "talking-agent.ts");

export type GroupOptions = {
  /** The engine's URL, without `/v1`. */
  engine: string;
  tasks: number;
  /** Calls of each rollout. */
  turns: number;
  leaves: number;
  seed: number;
  /** null runs chains. */
  branching: Branching | null;
  /** Rollouts of a tree that begin with the task, not at a fork. */
  samples: number;
  atOnce: number;
};

export type GroupFigures = {
  leaves: number;
  /** Rollouts without the reward 1. The grader gives it if each command ran exactly once. */
  failed: number;
  /** The error or the reward of each failed rollout. */
  reasons: string[];
  forks: number;
  /** Forks whose first new call was not sampled on the recorded ids. */
  rendered_forks: number;
  calls: number;
  sampled_tokens: number;
  seconds: number;
  rows: number;
  /** Number of sampled tokens for each sum of a token's weights over all rows. */
  tokens_by_weight: Record<string, number>;
  /** Trained tokens of the rows that no call of these rollouts sampled. */
  strange_tokens: number;
};

export async function runGroups(options: GroupOptions, signal: AbortSignal): Promise<GroupFigures> {
  const place = await mkdtemp(join(tmpdir(), "alidade-trees-"));
  try {
    return await runIn(place, options, signal);
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

async function runIn(place: string, options: GroupOptions, signal: AbortSignal): Promise<GroupFigures> {
  const { engine, turns, tasks, leaves, samples, seed, atOnce } = options;
  for (let number = 0; number < tasks; number++) await writeTask(join(place, "tasks", `count-${number}`), number, turns);
  const path = join(place, "run");
  const store = new DiskStore(RunFolder.sessions(path));
  const adapter = engineNamed("vllm").create({ baseUrl: engine, apiKey: null });
  const { backend } = await pickBackend("process", signal);
  const { branching } = options;
  let records: RolloutRecord[];
  let seconds: number;
  {
    await using folder = await RunFolder.open(path);
    await using proxy = await HarnessProxy.start({ engine: adapter, store, version: "bench" });
    const slots = makeSlots({ init: atOnce, run: atOnce, post: atOnce });
    const setup = { run_id: "trees", owner: await currentOwner(), backend, proxy, folder, slots, onProgress: () => undefined };
    const started = performance.now();
    records = await runTasks(
      setup,
      {
        tasks: await loadTasks(join(place, "tasks")),
        samples: branching === null ? leaves : samples,
        retries: 0,
        harness: commandHarness({ argv: ["node", agent, "{instruction}", String(turns)] }),
        session: { purpose: "train", seed },
        ...(branching && { branching: { options: branching, policy: branchingRegistry.named(branching.policy) } }),
      },
      signal,
    );
    seconds = (performance.now() - started) / 1000;
  }
  await adapter.close();
  const trajectories = await readTrajectories(path);
  const forks = trajectories.filter(({ forked_from }) => forked_from !== null);
  const failed = records.filter(({ verdict }) => verdict?.reward !== 1);
  return {
    leaves: records.length,
    failed: failed.length,
    reasons: failed.map(({ rollout_id, error, verdict }) => `${rollout_id}: ${error?.message ?? `reward ${verdict?.reward ?? null}`}`),
    forks: forks.length,
    rendered_forks: forks.filter((fork) => firstOwnCall(fork)?.continuity?.mode !== "recorded").length,
    ...(await countSampled(store)),
    seconds,
    ...(await weigh(trajectories)),
  };
}

function firstOwnCall({ calls }: Trajectory): Trajectory["calls"][number] | undefined {
  return calls.find(({ replayed_from }) => replayed_from === null);
}

/** Counts the calls that engines sampled, and their tokens, in the logs. Leaves out replayed calls. */
async function countSampled(store: DiskStore): Promise<{ calls: number; sampled_tokens: number }> {
  let calls = 0;
  let sampled_tokens = 0;
  for (const id of await store.list()) {
    for (const { finished } of toRecording(id, await store.read(id)).calls) {
      if (finished === null || finished.replayed_from !== undefined) continue;
      calls += 1;
      sampled_tokens += finished.sampled_ids?.length ?? 0;
    }
  }
  return { calls, sampled_tokens };
}

/** Adds up the weights of each sampled token over the rows of the flat format. */
export async function weigh(
  trajectories: readonly Trajectory[],
): Promise<Pick<GroupFigures, "rows" | "tokens_by_weight" | "strange_tokens">> {
  const weights = new Map<string, number>();
  for (const { calls } of trajectories)
    for (const { call_id, sampled_length } of calls) for (let at = 0; at < (sampled_length ?? 0); at++) weights.set(`${call_id} ${at}`, 0);
  const { rows } = await exported(flat, trajectories);
  let strange_tokens = 0;
  for (const { segments, loss_mask, weight } of rows.map((row) => FlatRow.parse(row)))
    for (const { call_id, start, end, node_start } of segments)
      for (let at = start; at < end; at++) {
        const trained = (loss_mask[at] ?? 0) * weight;
        if (trained === 0) continue;
        const key = `${call_id} ${node_start + at - start}`;
        const before = weights.get(key);
        if (before === undefined) strange_tokens += 1;
        else weights.set(key, before + trained);
      }
  const tokens_by_weight: Record<string, number> = {};
  for (const weight of weights.values()) tokens_by_weight[weight] = (tokens_by_weight[weight] ?? 0) + 1;
  return { rows: rows.length, tokens_by_weight, strange_tokens };
}

/** Writes a task in which each turn writes its number to a file. The grader wants each number exactly once, in order. */
async function writeTask(folder: string, number: number, turns: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const wanted = Array.from({ length: turns }, (_, turn) => `${turn}\\n`).join("");
  const check = `printf '${wanted}' | cmp -s - done.txt && echo '{"reward":1}' || echo '{"reward":0}'`;
  const limits = "{ agent_seconds: 600, grade_seconds: 60, memory_mb: 256, disk_mb: 64 }";
  await writeFile(
    join(folder, "task.yaml"),
    `task_id: count-${number}\ninstruction: "Count to ${turns}, naïve 日本 number ${number}."\nlimits: ${limits}\ngrader:\n  kind: script\n  command: [sh, -c, ${JSON.stringify(check)}]\n`,
  );
}
