/** One process at a time, by a file that names the one that holds it. */
import { open, readFile, rm, stat, utimes } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, messageOf } from "../errors.ts";
import { currentOwner, hostId, isOwnerAlive } from "./owner.ts";

/** The interval of the holder's sign of life, the only thing that another machine or container can see of it. */
const beatMs = 10_000;
/** Six beats were missed. */
const deadAfterMs = 60_000;
/** A lock is empty between its making and its first line; one that stays empty was left by a process that died there. */
const emptyForMs = 5_000;
const lookAgainMs = 50;

/**
 * Takes the lock file until the scope ends. A lock of a dead process is taken over. While another process holds it,
 * `onBusy` is called before each pause with a description of the holder; it may throw to give up. The folder must exist.
 *
 *     await using _lock = await lockFile(`${folder}/lock`, { onBusy: (holder) => say(`waiting for ${holder}`) });
 */
export async function lockFile(
  path: string,
  { signal, onBusy }: { signal?: AbortSignal; onBusy: (holder: string) => void },
): Promise<AsyncDisposable> {
  const mine = `${await hostId()} ${await currentOwner()}`;
  while (!(await take(path))) {
    signal?.throwIfAborted();
    const holder = await removeDead(path);
    if (holder === null) continue;
    onBusy(holder);
    await sleep(lookAgainMs, undefined, { signal });
  }
  const beat = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), beatMs);
  beat.unref();
  return {
    [Symbol.asyncDispose]: async () => {
      clearInterval(beat);
      // A machine that slept has lost it to another process.
      if ((await readFile(path, "utf8").catch(() => null)) === mine) await rm(path, { force: true });
    },
  };
}

async function take(path: string): Promise<boolean> {
  try {
    await using file = await open(path, "wx", 0o600);
    try {
      // With the moment it started: in a container every process in turn is number 1.
      await file.writeFile(`${await hostId()} ${await currentOwner()}`);
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** The holder in words where it lives; null: look again. */
async function removeDead(path: string): Promise<string | null> {
  const holder = await readIfThere(path);
  if (holder === null) return null;
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
  const quietMs = Date.now() - mtimeMs;
  const [host, owner = ""] = holder.split(" ");
  const isHere = host === (await hostId());
  const isAlive = holder === "" ? quietMs < emptyForMs : isHere ? await isOwnerAlive(owner) : quietMs < deadAfterMs;
  if (isAlive) return `process ${owner.split(":")[0] || "unknown"}${isHere || holder === "" ? "" : " of another machine or container"}`;
  await removeIfStill(path, holder);
  return null;
}

/** A lock that is there and cannot be read is another user's, or no file: waiting for it has no end. */
async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new AlidadeError(
      "config_invalid",
      `The lock ${path} cannot be read (${messageOf(error)}): remove it if no other user holds it.`,
      {
        cause: error,
      },
    );
  }
}

/**
 * Several processes may see a dead lock. One at a time may remove it, and only while it is still that lock: the first of
 * them may already have made a new one.
 */
async function removeIfStill(path: string, holder: string): Promise<void> {
  const claim = `${path}.removing`;
  if (await take(claim)) {
    try {
      if ((await readFile(path, "utf8").catch(() => null)) === holder) await rm(path, { force: true });
    } finally {
      await rm(claim, { force: true });
    }
    return;
  }
  // Held for a moment; one that stays was left by a process that died in it.
  const { mtimeMs } = await stat(claim).catch(() => ({ mtimeMs: Date.now() }));
  if (Date.now() - mtimeMs > emptyForMs) await rm(claim, { force: true });
  await sleep(lookAgainMs);
}
