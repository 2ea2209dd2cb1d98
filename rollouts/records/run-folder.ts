/**
 * `runs/<id>/`: what a run leaves behind, and what `--resume` goes on from.
 *
 *     run.json            what was asked for
 *     sessions/           a log a session
 *     rollouts.jsonl      a line at every change of a rollout; the last one of (rollout_id, attempt) counts
 *     trajectories.jsonl  one line an attempt that is over
 *     vocabulary/         texts of sampled tokens, a file a tokenizer; only for those who read
 *     blobs/              what each agent changed, a tarball by content hash
 *     deaths/             of processes that died at work here (base/host/deaths/); none after an orderly end
 *
 * A trajectory is written before the line that says its rollout is done, so a crash between the two leaves a
 * trajectory too many, never one too few; resume takes such orphans out. A line that cannot be read costs its own record:
 * a rollout whose trajectory or last word is lost is not done, and resume makes it again.
 */
import { rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeDrafts } from "../../base/files/layer.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { Appender, privateFileMode, toStoreError, vocabularyFolder } from "../../proxy/store/index.ts";
import { lockFolder } from "./folder-lock.ts";
import { rewriteTrajectories } from "./rewrite-trajectories.ts";
import { attemptKey, eachTrajectory, type OnDamage, readRollouts } from "./run-records.ts";

export class RunFolder implements AsyncDisposable {
  readonly path: string;
  /** A process was at work in it before, and may have left more behind than it put on record. */
  readonly isResumed: boolean;
  /** What stood in it when it was opened. */
  readonly found: Found;
  readonly #rollouts: Appender;
  #trajectories: Appender;
  readonly #scope: AsyncDisposableStack;

  private constructor(
    path: string,
    before: { isResumed: boolean; found: Found },
    rollouts: Appender,
    trajectories: Appender,
    scope: AsyncDisposableStack,
  ) {
    this.path = path;
    this.isResumed = before.isResumed;
    this.found = before.found;
    this.#rollouts = rollouts;
    this.#trajectories = trajectories;
    this.#scope = scope;
  }

  static sessions(path: string): string {
    return join(path, "sessions");
  }

  static vocabulary(path: string): string {
    return join(path, vocabularyFolder);
  }

  static records(path: string): string {
    return join(path, "rollouts.jsonl");
  }

  get blobs(): string {
    return join(this.path, "blobs");
  }

  /** Makes the folder, or opens it again. One process owns it at a time; throws `config_invalid` naming the other. */
  static async open(path: string): Promise<RunFolder> {
    await using scope = new AsyncDisposableStack();
    scope.use(await lockFolder(path));
    await removeDrafts(join(path, "blobs"));
    const found = await look(path);
    if (found.orphans > 0) await rewriteTrajectories(path, (one) => (found.done.has(attemptKey(one)) ? one : null));
    const file = RunFolder.records(path);
    const isResumed = (await stat(file).catch(() => null)) !== null;
    const rollouts = scope.use(await Appender.open(file));
    const trajectories = scope.use(await Appender.open(join(path, "trajectories.jsonl")));
    return new RunFolder(path, { isResumed, found }, rollouts, trajectories, scope.move());
  }

  /** The run's options, written once: a resumed run must find them, even on a full disk. */
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

  /** Takes the trajectories with these attempt keys out of the file. Other trajectories have all of their calls. */
  async leaveOut(keys: ReadonlySet<string>): Promise<void> {
    if (keys.size === 0) return;
    await rewriteTrajectories(this.path, (one) => (keys.has(attemptKey(one)) ? null : one));
    // The file that was appended to is gone.
    this.#trajectories = this.#scope.use(await Appender.open(join(this.path, "trajectories.jsonl")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.disposeAsync();
  }
}

/** What an earlier process left in the folder. */
type Found = {
  /** Attempts that are over, by their key. */
  done: ReadonlySet<string>;
  /** Those of them whose trajectory can be read. */
  kept: ReadonlySet<string>;
  /** The highest attempt of each rollout in the trajectories, finished or not. */
  lastAttempts: ReadonlyMap<string, number>;
  /** Trajectories of attempts that are not over. */
  orphans: number;
  /** A sentence for each line that cannot be read. */
  damaged: readonly string[];
};

async function look(path: string): Promise<Found> {
  const damaged: string[] = [];
  const onDamage: OnDamage = ({ message }) => void damaged.push(message);
  const done = new Set((await readRollouts(path, onDamage)).filter((record) => record.state === "done").map(attemptKey));
  const kept = new Set<string>();
  const lastAttempts = new Map<string, number>();
  let orphans = 0;
  for await (const trajectory of eachTrajectory(path, onDamage)) {
    const key = attemptKey(trajectory);
    if (done.has(key)) kept.add(key);
    else orphans++;
    const { rollout_id, attempt } = trajectory;
    if (rollout_id !== null) lastAttempts.set(rollout_id, Math.max(attempt, lastAttempts.get(rollout_id) ?? 0));
  }
  return { done, kept, lastAttempts, orphans, damaged };
}
