/** One process at a time, by a file that names the one that holds it. */
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { currentOwner, isOwnerAlive } from "../host/owner.ts";

/** An install takes several seconds, so a look five times a second costs nothing and delays nobody. */
const lookAgainMs = 200;

/**
 * Runs `body` while holding the lock file. A lock whose process is gone is taken over. It saves doubled work and no
 * more: what it guards must be right without it, for two may take over the same dead lock at once.
 */
export async function withProcessLock<T>(
  path: string,
  options: { signal: AbortSignal; progress?: (line: string) => void },
  body: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true });
  let reported = false;
  while (!(await taken(path))) {
    options.signal.throwIfAborted();
    if (await removedDead(path)) continue;
    if (!reported) options.progress?.(`waiting for another process that holds ${path}`);
    reported = true;
    await sleep(lookAgainMs, undefined, { signal: options.signal });
  }
  try {
    return await body();
  } finally {
    await rm(path, { force: true });
  }
}

async function taken(path: string): Promise<boolean> {
  try {
    await using file = await open(path, "wx");
    // With the moment it started: in a container every process in turn is number 1.
    await file.writeFile(await currentOwner());
    return true;
  } catch (error) {
    if (isCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Moved away before it is removed, so that of two that see a dead lock only one removes it. */
async function removedDead(path: string): Promise<boolean> {
  const holder = await readFile(path, "utf8").catch(() => null);
  if (holder === null) return true;
  if (holder === "" ? await isYoung(path) : await isOwnerAlive(holder)) return false;
  const aside = `${path}.${process.pid}`;
  await rename(path, aside).catch(() => undefined);
  await rm(aside, { force: true });
  return true;
}

/** A lock is empty for a moment, between the file and its content; one that stays so was left by a killed process. */
async function isYoung(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found !== null && Date.now() - found.mtimeMs < 5000;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
