/** Finds what a person names: a rollout, a session, or a trajectory, in a run folder or the newest one. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { reconstruct } from "../reconstruct/index.ts";
import { eachAttempt, eachTrajectory, readRollouts } from "../rollouts/index.ts";
import type { RolloutRecord } from "../schema/rollout.ts";
import type { LogEntry, SessionSpec } from "../schema/session-log.ts";
import type { Attempt, Trajectory } from "../schema/trajectory.ts";
import { DiskStore } from "../store/index.ts";

/**
 * The run folder itself, or the newest below `runs/` in which anything was recorded: a run that was refused at its start
 * (no engine, no task) leaves a folder too, and nobody means that one. Throws `not_found`.
 */
export async function runFolderOf(folder: string | undefined): Promise<string> {
  if (folder !== undefined) {
    if (await isRun(folder)) return folder;
    const exists = await stat(folder).catch(() => null);
    throw new AlidadeError("not_found", exists ? `${folder} holds no run: it has no sessions/` : `there is no folder ${folder}`, {
      param: "run",
    });
  }
  const names = await readdir("runs").catch((): string[] => []);
  const runs = await Array.fromAsync(names, async (name) => ((await hasRecords(join("runs", name))) ? [join("runs", name)] : []));
  const dated = await Promise.all(runs.flat().map(async (path) => ({ path, time: (await stat(path)).mtimeMs })));
  const newest = dated.sort((a, b) => b.time - a.time)[0];
  if (!newest)
    throw new AlidadeError("not_found", "there is no run below runs/ here that recorded anything: name its folder with --run", {
      param: "run",
    });
  return newest.path;
}

async function isRun(folder: string): Promise<boolean> {
  for (const name of ["sessions", "trajectories.jsonl"]) if (await stat(join(folder, name)).catch(() => null)) return true;
  return false;
}

async function hasRecords(folder: string): Promise<boolean> {
  const written = await stat(join(folder, "trajectories.jsonl")).catch(() => null);
  const sessions = await readdir(join(folder, "sessions")).catch((): string[] => []);
  return sessions.length > 0 || (written !== null && written.size > 0);
}

/** The last attempt of a rollout, a session, or the only trajectory whose id begins so. Throws `not_found` with what there is. */
export async function findTrajectory(folder: string, name: string): Promise<Trajectory> {
  let exact: Trajectory | null = null;
  let near: Trajectory | null = null;
  let isOnly = true;
  const known: string[] = [];
  for await (const one of eachTrajectory(folder)) {
    const ids = [one.rollout_id ?? "", one.session_id, one.trajectory_id, `${one.task.id}/${one.group.sample_index}`];
    if (known.length < mostNamed) known.push(one.rollout_id ?? one.session_id);
    if (ids.includes(name)) exact = one;
    else if (ids.some((id) => id.startsWith(name))) {
      isOnly &&= near === null;
      near = one;
    }
  }
  if (exact) return exact;
  if (near && isOnly) return near;
  // A session that no trajectory was written of: one of `serve`, or of a process that died.
  const store = new DiskStore(join(folder, "sessions"));
  if ((await store.list()).includes(name)) return reconstruct(await store.read(name));
  throw new AlidadeError(
    "not_found",
    `${folder} holds no rollout or session "${name}"${known.length > 0 ? `; it has ${known.join(", ")}` : ""}`,
    { param: "rollout" },
  );
}

/** What an error lists; a run may have thousands. */
const mostNamed = 20;

/**
 * Every trajectory of a run folder; sessions without one (of `serve`) are reconstructed from their logs. What is left out
 * is told: a log that is damaged, and the session of an attempt that is not over, of which nobody knows what it is worth.
 */
export async function* trajectoriesOf(folder: string, onLeftOut: (message: string) => void): AsyncGenerator<Trajectory> {
  const seen = new Set<string>();
  for await (const trajectory of eachTrajectory(folder)) {
    seen.add(trajectory.session_id);
    yield trajectory;
  }
  const attempts = await attemptsBySession(folder);
  const store = new DiskStore(join(folder, "sessions"));
  for (const sessionId of await store.list()) {
    if (seen.has(sessionId)) continue;
    const attempt = attempts.get(sessionId);
    if (attempt) {
      const why = attempt.state === "done" ? "no trajectory could be made of it" : "it is not over: go on with its run by --resume";
      onLeftOut(`session ${sessionId} of rollout ${attempt.rollout_id} is left out: ${why}`);
      continue;
    }
    const trajectory = await rebuilt(store, sessionId).catch((error: unknown) => {
      if (!isDamage(error)) throw error;
      onLeftOut(`session ${sessionId} is left out: ${error.message}`);
      return null;
    });
    if (trajectory) yield trajectory;
  }
}

/**
 * A first look at what `trajectoriesOf` will give, for an export that has to know a rollout's last attempt before it
 * writes the first: of a log it reads as far as its first call.
 */
export async function* attemptsOf(folder: string): AsyncGenerator<Attempt> {
  const seen = new Set<string>();
  for await (const attempt of eachAttempt(folder)) {
    seen.add(attempt.session_id);
    yield attempt;
  }
  const attempts = await attemptsBySession(folder);
  const store = new DiskStore(join(folder, "sessions"));
  for (const sessionId of await store.list()) {
    if (seen.has(sessionId) || attempts.has(sessionId)) continue;
    const attempt = await attemptIn(store.entries(sessionId));
    if (attempt) yield attempt;
  }
}

async function attemptsBySession(folder: string): Promise<Map<string | null, RolloutRecord>> {
  return new Map((await readRollouts(folder)).map((record) => [record.session_id, record]));
}

/** Null where nothing was asked, or the log is damaged before that. */
async function attemptIn(entries: AsyncIterable<LogEntry>): Promise<Attempt | null> {
  let found: Attempt | null = null;
  try {
    for await (const entry of entries) {
      if (entry.type === "call_begun") return found;
      if (entry.type === "opened") found = toAttempt(entry.session_id, entry.spec);
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  return null;
}

function toAttempt(session_id: string, { rollout_id, attempt, task_id, group_id }: SessionSpec): Attempt {
  return { session_id, rollout_id, attempt, task: { id: task_id }, group: { id: group_id } };
}

function isDamage(error: unknown): error is AlidadeError {
  return error instanceof AlidadeError && error.code === "store_error";
}

async function rebuilt(store: DiskStore, sessionId: string): Promise<Trajectory | null> {
  const entries = await store.read(sessionId);
  return entries.some((entry) => entry.type === "call_begun") ? reconstruct(entries) : null;
}
