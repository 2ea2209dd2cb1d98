/** Bare clones on this machine, for builds without the internet: `<folder>/<owner>/<name>.git`. */
import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { fetching, runGit } from "../../made/run-git.ts";
import { taskError } from "../../task-error.ts";

/** Returns null if the folder has no clone of this repository. `repo`: owner/name. */
export async function mirrorOf(repo: string, folder: string | null): Promise<string | null> {
  if (folder === null) return null;
  if (!(await isFolder(folder)))
    throw new AlidadeError("config_invalid", `repositories is ${folder}, and there is no such folder: name one that holds owner/name.git`, {
      param: "repositories",
    });
  const place = join(resolve(folder), `${repo}.git`);
  return (await isFolder(place)) ? place : null;
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() ?? false;
}

/** Makes a bare repository at `to` with the commit, its history and the tags on that. Copies nothing that came after it. */
export async function historyUntil(commit: string, mirror: string, to: string, where: string, signal?: AbortSignal): Promise<void> {
  const options = { signal: signal ?? new AbortController().signal };
  try {
    const printed = await runGit(["--git-dir", mirror, "rev-parse", "--verify", "--end-of-options", `${commit}^{commit}`], options);
    await runGit(["init", "--bare", "--quiet", "--template=", "--initial-branch=base", to], options);
    const ref = `${printed.toString("latin1").trim()}:refs/heads/base`;
    await runGit(["--git-dir", to, "fetch", "--quiet", "--", mirror, ref], { ...options, env: fetching(process.env) });
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof AlidadeError)) throw error;
    throw taskError(where, "base_commit", `is ${commit}, and it cannot be copied from ${mirror}: ${messageOf(error)}`);
  }
}
