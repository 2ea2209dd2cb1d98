/** Finds what a person names: a rollout, a session, or a trajectory, in a run folder or the newest one. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../errors.ts";
import { reconstruct } from "../reconstruct/index.ts";
import { readTrajectories } from "../rollouts/index.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { DiskStore } from "../store/index.ts";

/** The run folder itself, or the newest below `runs/`. Throws `not_found`. */
export async function runFolderOf(folder: string | undefined): Promise<string> {
  if (folder !== undefined) {
    if (await stat(folder).catch(() => null)) return folder;
    throw new AlidadeError("not_found", `there is no folder ${folder}`, { param: "run" });
  }
  const names = await readdir("runs").catch((): string[] => []);
  const dated = await Promise.all(
    names.map(async (name) => ({ path: join("runs", name), time: (await stat(join("runs", name))).mtimeMs })),
  );
  const newest = dated.sort((a, b) => b.time - a.time)[0];
  if (!newest) throw new AlidadeError("not_found", "there is no runs/ here: name the run's folder with --run", { param: "run" });
  return newest.path;
}

/** The last attempt of a rollout, a session, or the only trajectory whose id begins so. Throws `not_found` with what there is. */
export async function findTrajectory(folder: string, name: string): Promise<Trajectory> {
  const trajectories = await readTrajectories(folder);
  const idsOf = (one: Trajectory): string[] => [
    one.rollout_id ?? "",
    one.session_id,
    one.trajectory_id,
    `${one.task.id}/${one.group.sample_index}`,
  ];
  const exact = trajectories.findLast((one) => idsOf(one).includes(name));
  if (exact) return exact;
  const near = trajectories.filter((one) => idsOf(one).some((id) => id.startsWith(name)));
  if (near.length === 1) return near[0] as Trajectory;
  // A session that no trajectory was written of: one of `serve`, or of a process that died.
  const store = new DiskStore(join(folder, "sessions"));
  if ((await store.list()).includes(name)) return reconstruct(await store.read(name));
  const known = trajectories.map((one) => one.rollout_id ?? one.session_id).slice(0, 20);
  throw new AlidadeError(
    "not_found",
    `${folder} holds no rollout or session "${name}"${known.length > 0 ? `; it has ${known.join(", ")}` : ""}`,
    { param: "rollout" },
  );
}

/** Every trajectory of a run folder; sessions without one (of `serve`) are reconstructed from their logs. */
export async function* trajectoriesOf(folder: string): AsyncGenerator<Trajectory> {
  const seen = new Set<string>();
  for (const trajectory of await readTrajectories(folder)) {
    seen.add(trajectory.session_id);
    yield trajectory;
  }
  const store = new DiskStore(join(folder, "sessions"));
  for (const sessionId of await store.list()) {
    if (seen.has(sessionId)) continue;
    const entries = await store.read(sessionId);
    if (entries.some((entry) => entry.type === "call_begun")) yield reconstruct(entries);
  }
}
