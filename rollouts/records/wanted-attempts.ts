/** Goes over a finished run again, for commands that do so: takes the last attempts of the wanted rollouts, several at once. */
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { attemptKey, eachTrajectory, type OnDamage, readRollouts } from "./run-records.ts";

/** Maps the `attemptKey` of each attempt to its record. */
export type WantedAttempts = ReadonlyMap<string, RolloutRecord>;

export async function readWanted(path: string, isWanted: (record: RolloutRecord) => boolean, onDamage: OnDamage): Promise<WantedAttempts> {
  const last = new Map((await readRollouts(path, onDamage)).map((record) => [record.rollout_id, record]));
  return new Map([...last.values()].filter(isWanted).map((record) => [attemptKey(record), record]));
}

/**
 * Calls `work` for the trajectory of each wanted attempt, `atOnce` at once. Returns the attempts without a trajectory. Rejects with the
 * first failure, once the running calls have ended.
 */
export async function workThrough(
  { path, atOnce, onDamage }: { path: string; atOnce: number; onDamage: OnDamage },
  wanted: WantedAttempts,
  work: (record: RolloutRecord, trajectory: Trajectory) => Promise<void>,
  signal: AbortSignal,
): Promise<RolloutRecord[]> {
  const open = new Map(wanted);
  const running = new Set<Promise<void>>();
  try {
    for await (const trajectory of eachTrajectory(path, onDamage)) {
      signal.throwIfAborted();
      const key = attemptKey(trajectory);
      const record = open.get(key);
      if (record === undefined) continue;
      open.delete(key);
      const one = work(record, trajectory);
      running.add(one);
      one.then(
        () => running.delete(one),
        () => {}, // stays in `running`: a wait throws it
      );
      while (running.size >= atOnce) await Promise.race(running);
    }
    await Promise.all(running);
    signal.throwIfAborted();
  } finally {
    await Promise.allSettled(running);
  }
  return [...open.values()];
}

export function whyNoTrajectory({ state }: RolloutRecord): string {
  return state === "done" ? "no trajectory of it can be read" : "it is not over";
}
