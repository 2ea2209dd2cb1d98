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
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { RolloutRecord } from "../schema/rollout.ts";
import { Trajectory } from "../schema/trajectory.ts";
import { Appender, readJsonLines } from "../store/index.ts";

export class RunFolder implements AsyncDisposable {
  readonly path: string;
  readonly #rollouts: Appender;
  readonly #trajectories: Appender;

  private constructor(path: string, rollouts: Appender, trajectories: Appender) {
    this.path = path;
    this.#rollouts = rollouts;
    this.#trajectories = trajectories;
  }

  static sessions(path: string): string {
    return join(path, "sessions");
  }

  /** Makes the folder, or opens it again. One process owns it at a time; throws `config_invalid` naming the other. */
  static async open(path: string): Promise<RunFolder> {
    await mkdir(path, { recursive: true });
    await takeLock(join(path, "lock"));
    await dropOrphans(path);
    return new RunFolder(path, await Appender.open(join(path, "rollouts.jsonl")), await Appender.open(join(path, "trajectories.jsonl")));
  }

  async record(record: RolloutRecord): Promise<void> {
    await this.#rollouts.append(`${JSON.stringify(record)}\n`);
  }

  async keep(trajectory: Trajectory): Promise<void> {
    await this.#trajectories.append(`${JSON.stringify(trajectory)}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rollouts[Symbol.asyncDispose]();
    await this.#trajectories[Symbol.asyncDispose]();
    await rm(join(this.path, "lock"), { force: true });
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

export function readTrajectories(path: string): Promise<Trajectory[]> {
  return Array.fromAsync(eachTrajectory(path));
}

export function attemptKey(record: { rollout_id: string | null; attempt: number }): string {
  return `${record.rollout_id}#${record.attempt}`;
}

async function dropOrphans(path: string): Promise<void> {
  const file = join(path, "trajectories.jsonl");
  const trajectories = await readTrajectories(path);
  const done = new Set((await readRollouts(path)).filter((record) => record.state === "done").map(attemptKey));
  const kept = trajectories.filter((trajectory) => done.has(attemptKey(trajectory)));
  if (kept.length === trajectories.length) return;
  await writeFile(`${file}.new`, kept.map((trajectory) => `${JSON.stringify(trajectory)}\n`).join(""));
  await rename(`${file}.new`, file);
}

/** A lock file with our pid; one whose process is gone is taken over. */
async function takeLock(path: string): Promise<void> {
  for (;;) {
    try {
      await writeFile(path, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const pid = Number(await readFile(path, "utf8").catch(() => "0"));
    if (pid > 0 && isAlive(pid))
      throw new AlidadeError(
        "config_invalid",
        `process ${pid} is at work in ${path.replace(/\/lock$/, "")}: wait for it, or name another --out`,
      );
    await rm(path, { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
