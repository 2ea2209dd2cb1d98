/** Which run is meant: the folder that is named, or the newest. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { AlidadeError } from "../../../base/errors.ts";

/**
 * The run folder itself, what `serve --out` recorded below it, or the newest below `runs/` with a record. A run that was refused at its start (no engine, no
 * task) leaves an empty folder, which is skipped. Throws `not_found`.
 */
export async function runFolderOf(folder: string | undefined): Promise<string> {
  if (folder !== undefined) {
    for (const place of [folder, join(folder, "serve")]) if (await isRun(place)) return place;
    const exists = await stat(folder).catch(() => null);
    throw new AlidadeError("not_found", exists ? `${folder} holds no run: it has no sessions/` : `there is no folder ${folder}`, {
      param: "run",
    });
  }
  const names = await readdir("runs").catch((): string[] => []);
  const runs = await Array.fromAsync(names, async (name) => ((await hasRecords(join("runs", name))) ? [join("runs", name)] : []));
  const dated = await Promise.all(runs.flat().map(async (path) => ({ path, time: (await stat(path)).mtimeMs })));
  const newest = dated.sort((a, b) => b.time - a.time || (a.path < b.path ? 1 : -1))[0];
  if (!newest)
    throw new AlidadeError("not_found", "there is no run below runs/ here that recorded anything: name its folder with --run", {
      param: "run",
    });
  return newest.path;
}

export async function isRun(folder: string): Promise<boolean> {
  for (const name of ["sessions", "trajectories.jsonl"]) if (await stat(join(folder, name)).catch(() => null)) return true;
  return false;
}

async function hasRecords(folder: string): Promise<boolean> {
  const written = await stat(join(folder, "trajectories.jsonl")).catch(() => null);
  const sessions = await readdir(join(folder, "sessions")).catch((): string[] => []);
  return sessions.length > 0 || (written !== null && written.size > 0);
}
