/**
 * `runs/<id>/`: what a run leaves behind, and what `--resume` goes on from.
 *
 *     run.json            what was asked for
 *     sessions/           a log a session
 *     rollouts.jsonl      a line at every change of a rollout; the last one of (rollout_id, attempt) counts
 *     trajectories.jsonl  one line an attempt that is over
 *
 * A trajectory is written before the line that says its rollout is done, so a crash between the two leaves a
 * trajectory too many, never one too few; resume takes such orphans out.
 */
import { rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RolloutRecord } from "../schema/rollout.ts";
import { Attempt, Trajectory } from "../schema/trajectory.ts";
import { Appender, privateFileMode, readJsonLines, toStoreError } from "../store/index.ts";
import { lockFolder } from "./folder-lock.ts";

export class RunFolder implements AsyncDisposable {
  readonly path: string;
  /** A process was at work in it before, and may have left more behind than it put on record. */
  readonly isResumed: boolean;
  readonly #rollouts: Appender;
  readonly #trajectories: Appender;
  readonly #scope: AsyncDisposableStack;

  private constructor(path: string, isResumed: boolean, rollouts: Appender, trajectories: Appender, scope: AsyncDisposableStack) {
    this.path = path;
    this.isResumed = isResumed;
    this.#rollouts = rollouts;
    this.#trajectories = trajectories;
    this.#scope = scope;
  }

  static sessions(path: string): string {
    return join(path, "sessions");
  }

  /** Makes the folder, or opens it again. One process owns it at a time; throws `config_invalid` naming the other. */
  static async open(path: string): Promise<RunFolder> {
    await using scope = new AsyncDisposableStack();
    scope.use(await lockFolder(path));
    await dropOrphans(path);
    const file = join(path, "rollouts.jsonl");
    const isResumed = (await stat(file).catch(() => null)) !== null;
    const rollouts = scope.use(await Appender.open(file));
    const trajectories = scope.use(await Appender.open(join(path, "trajectories.jsonl")));
    return new RunFolder(path, isResumed, rollouts, trajectories, scope.move());
  }

  /** What was asked for, written once: a run that goes on must find it, also when its disk is full. */
  async describe(run: unknown): Promise<void> {
    const file = join(this.path, "run.json");
    if (await stat(file).catch(() => null)) return;
    try {
      await writeFile(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`, { mode: privateFileMode });
      await rename(`${file}.new`, file);
    } catch (error) {
      await rm(`${file}.new`, { force: true });
      throw toStoreError(file, error);
    }
  }

  async record(record: RolloutRecord): Promise<void> {
    await this.#rollouts.append(`${JSON.stringify(record)}\n`);
  }

  async keep(trajectory: Trajectory): Promise<void> {
    await this.#trajectories.append(`${JSON.stringify(trajectory)}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.disposeAsync();
  }
}

/** The last record of every attempt, in the order in which the attempts began. */
export async function readRollouts(path: string): Promise<RolloutRecord[]> {
  const latest = new Map<string, RolloutRecord>();
  for await (const record of readJsonLines(join(path, "rollouts.jsonl"), (value) => RolloutRecord.parse(value)))
    latest.set(attemptKey(record), record);
  return [...latest.values()];
}

/** One at a time, for a run's trajectories may be larger than memory. */
export function eachTrajectory(path: string): AsyncGenerator<Trajectory> {
  return readJsonLines(join(path, "trajectories.jsonl"), (value) => Trajectory.parse(value));
}

/** The same without what they hold: a first look at a run. */
export function eachAttempt(path: string): AsyncGenerator<Attempt> {
  return readJsonLines(join(path, "trajectories.jsonl"), (value) => Attempt.parse(value));
}

export function readTrajectories(path: string): Promise<Trajectory[]> {
  return Array.fromAsync(eachTrajectory(path));
}

export function attemptKey(record: { rollout_id: string | null; attempt: number }): string {
  return `${record.rollout_id}#${record.attempt}`;
}

async function dropOrphans(path: string): Promise<void> {
  const file = join(path, "trajectories.jsonl");
  const done = new Set((await readRollouts(path)).filter((record) => record.state === "done").map(attemptKey));
  if (!(await hasOrphan(path, done))) return;
  // Of a process that was killed right here.
  await rm(`${file}.new`, { force: true });
  await using copy = await Appender.open(`${file}.new`);
  for await (const trajectory of eachTrajectory(path)) {
    if (done.has(attemptKey(trajectory))) await copy.append(`${JSON.stringify(trajectory)}\n`);
  }
  await rename(`${file}.new`, file);
}

async function hasOrphan(path: string, done: Set<string>): Promise<boolean> {
  for await (const trajectory of eachTrajectory(path)) if (!done.has(attemptKey(trajectory))) return true;
  return false;
}
