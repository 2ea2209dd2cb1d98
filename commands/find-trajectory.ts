/** Finds what a person names: a rollout, a session, or a trajectory, in a run folder or the newest one. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { reconstruct } from "../reconstruct/index.ts";
import { eachTrajectory, readRollouts } from "../rollouts/index.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { DiskStore } from "../store/index.ts";

/** The run folder itself, or the newest below `runs/`. Throws `not_found`. */
export async function runFolderOf(folder: string | undefined): Promise<string> {
  if (folder !== undefined) {
    if (await isRun(folder)) return folder;
    const exists = await stat(folder).catch(() => null);
    throw new AlidadeError("not_found", exists ? `${folder} holds no run: it has no sessions/` : `there is no folder ${folder}`, {
      param: "run",
    });
  }
  const names = await readdir("runs").catch((): string[] => []);
  const runs = await Array.fromAsync(names, async (name) => ((await isRun(join("runs", name))) ? [join("runs", name)] : []));
  const dated = await Promise.all(runs.flat().map(async (path) => ({ path, time: (await stat(path)).mtimeMs })));
  const newest = dated.sort((a, b) => b.time - a.time)[0];
  if (!newest) throw new AlidadeError("not_found", "there is no run below runs/ here: name its folder with --run", { param: "run" });
  return newest.path;
}

async function isRun(folder: string): Promise<boolean> {
  for (const name of ["sessions", "trajectories.jsonl"]) if (await stat(join(folder, name)).catch(() => null)) return true;
  return false;
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
  const attempts = new Map((await readRollouts(folder)).map((record) => [record.session_id, record]));
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
      if (!(error instanceof AlidadeError) || error.code !== "store_error") throw error;
      onLeftOut(`session ${sessionId} is left out: ${error.message}`);
      return null;
    });
    if (trajectory) yield trajectory;
  }
}

async function rebuilt(store: DiskStore, sessionId: string): Promise<Trajectory | null> {
  const entries = await store.read(sessionId);
  return entries.some((entry) => entry.type === "call_begun") ? reconstruct(entries) : null;
}
