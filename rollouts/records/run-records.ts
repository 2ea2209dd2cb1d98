/** Reads what a run folder (run-folder.ts) holds of its rollouts. */
import { join } from "node:path";
import type { AlidadeError } from "../../base/errors.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { Attempt, readTrajectory, type Trajectory } from "../../base/schema/trajectory.ts";
import { readJsonLines } from "../../proxy/store/index.ts";

/** Told of each line that cannot be read, which is left out; without it the line is thrown as `store_error`. */
export type OnDamage = (error: AlidadeError) => void;

/** The last record of every attempt, in the order in which the attempts began. */
export async function readRollouts(path: string, onDamage?: OnDamage): Promise<RolloutRecord[]> {
  const latest = new Map<string, RolloutRecord>();
  for await (const record of eachReadable(join(path, "rollouts.jsonl"), (value) => RolloutRecord.parse(value), onDamage))
    latest.set(attemptKey(record), record);
  return [...latest.values()];
}

/** By task the last record of each rollout, in the order of samples. What cannot be read is left out: the folder named it when it was opened. */
export async function lastByTask(path: string): Promise<Map<string, RolloutRecord[]>> {
  const records = await readRollouts(path, () => undefined);
  const last = new Map(records.map((record) => [record.rollout_id, record]));
  const byTask = Map.groupBy(last.values(), ({ task_id }) => task_id);
  for (const all of byTask.values()) all.sort((a, b) => a.sample_index - b.sample_index);
  return byTask;
}

/** One at a time, for a run's trajectories may be larger than memory. */
export function eachTrajectory(path: string, onDamage?: OnDamage): AsyncGenerator<Trajectory> {
  return eachReadable(join(path, "trajectories.jsonl"), readTrajectory, onDamage);
}

/** The same without what they hold: a first look at a run. What cannot be read is left out: `eachTrajectory` tells it. */
export function eachAttempt(path: string): AsyncGenerator<Attempt> {
  return eachReadable(
    join(path, "trajectories.jsonl"),
    (value) => Attempt.parse(value),
    () => undefined,
  );
}

export function readTrajectories(path: string, onDamage?: OnDamage): Promise<Trajectory[]> {
  return Array.fromAsync(eachTrajectory(path, onDamage));
}

export function attemptKey(record: { rollout_id: string | null; attempt: number }): string {
  return `${record.rollout_id}#${record.attempt}`;
}

async function* eachReadable<T extends object>(path: string, parse: (value: unknown) => T, onDamage?: OnDamage): AsyncGenerator<T> {
  const leaveOut = (_line: string, error: AlidadeError): null => {
    onDamage?.(error);
    return null;
  };
  for await (const record of readJsonLines<T | null>(path, parse, onDamage && leaveOut)) if (record !== null) yield record;
}
