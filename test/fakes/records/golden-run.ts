/**
 * A run of many random sessions, the same in every test: harnesses that continue, retry, fork, drift and spawn agents, with
 * rewards of all kinds, steps of three policies, rollouts that were tried twice, and sessions that no verdict belongs to.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import type { LogEntry } from "../../../base/schema/session-log.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { type Move, moves, play } from "../../reconstruct/random-sessions.ts";
import { viewedRollout } from "./viewed-run.ts";

const rewards = [1, 0, 0.5, null, 0, 1, 1, 0];
const groupSize = 4;

/** Writes `count` sessions. A rollout in twenty has an earlier attempt, and a session in twenty has no rollout. */
export async function writeGoldenRun(folder: string, count: number): Promise<void> {
  await mkdir(join(folder, "sessions"), { recursive: true });
  const [trajectories, records]: [string[], string[]] = [[], []];
  const drawn = fc.sample(moves, { numRuns: count, seed: 20_261_128 });
  for (const [at, played] of drawn.entries()) {
    const made = goldenRollout(at, played);
    trajectories.push(`${JSON.stringify(made.trajectory)}\n`);
    if (made.record !== null) records.push(`${JSON.stringify(made.record)}\n`);
  }
  await writeFile(join(folder, "trajectories.jsonl"), trajectories.join(""));
  await writeFile(join(folder, "rollouts.jsonl"), records.join(""));
}

function goldenRollout(at: number, played: Move[]) {
  const isAlone = at % 20 === 7;
  const isEarlier = at % 20 === 12;
  // An earlier attempt is of the rollout that comes next.
  const number = isEarlier ? at + 1 : at;
  const sample_index = number % groupSize;
  const group = Math.floor(number / groupSize);
  const task_id = `task${group % 15}`;
  const reward = isEarlier ? null : group % 9 === 0 ? 1 : (rewards[(number * 5 + group) % rewards.length] ?? null);
  const named = { task_id, group_id: `g${group}`, sample_index };
  const plain = viewedRollout({ ...named, at, size: groupSize, reward, turns: 2, words: 1, vocabulary: new Map() }).record;
  const record = { ...plain, rollout_id: `roll${number}`, attempt: isEarlier || at % 20 !== 13 ? 1 : 2 };
  const step = 1 + (at % 3);
  const entries = play(played).entries.map((entry) => withPolicy(entry, { version: `v${step}`, step }));
  const [opened] = entries;
  if (opened?.type === "opened") {
    opened.session_id = `ses${at}`;
    const of = isAlone
      ? { rollout_id: null, task_id: null, group_id: null, sample_index: null }
      : { ...named, rollout_id: record.rollout_id };
    opened.spec = { ...opened.spec, ...of, attempt: record.attempt, labels: { split: at % 3 === 0 ? "held-out" : "train" } };
  }
  if (isAlone) return { trajectory: reconstruct(entries), record: null };
  const { stop_reason, mask_reason } = record;
  const facts = { status: "graded" as const, reward, in_loss: reward !== null, mask_reason, stop_reason, group: { size: groupSize } };
  const trajectory = reconstruct(entries, facts);
  const { sampled_tokens, trainable_tokens } = trajectory.fidelity;
  const counts = { turns: trajectory.calls.length, traces: trajectory.traces.length, sampled_tokens, trainable_tokens };
  return { trajectory, record: { ...record, summary: { ...counts, untrained_by_agent: {} } } };
}

function withPolicy(entry: LogEntry, policy: { version: string; step: number }): LogEntry {
  switch (entry.type) {
    case "call_begun":
    case "tried":
    case "call_finished":
      return { ...entry, policy };
    default:
      return entry;
  }
}
