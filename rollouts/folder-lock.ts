/** A folder of records has one owner process at a time: two would cut each other's lines. */
import { open, readFile, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../errors.ts";
import { currentOwner, hostId, isOwnerAlive } from "../host/owner.ts";
import { makePrivateFolder, privateFileMode, toStoreError } from "../store/index.ts";

/** The owner says so often that it lives: of a process on another machine (or in another container) that is all one can see. */
const beatMs = 10_000;
/** Six beats were missed. */
const deadAfterMs = 60_000;
/** A lock is empty between its making and its first line; one that stays so was left by a process that died there. */
const emptyForMs = 5_000;

/**
 * Makes the folder and takes it until the scope ends; a lock whose process is gone is taken over. Throws
 * `config_invalid` naming the process that is at work there, at once or when `waitMs` are over.
 */
export async function lockFolder(folder: string, { waitMs = 0 }: { waitMs?: number } = {}): Promise<AsyncDisposable> {
  const path = join(folder, "lock");
  const until = Date.now() + waitMs;
  try {
    await makePrivateFolder(folder);
    while (!(await take(path))) {
      const busy = await removeDead(path, folder);
      if (busy && Date.now() >= until) throw busy;
      if (busy) await sleep(lookAgainMs);
    }
  } catch (error) {
    throw toStoreError(path, error);
  }
  const beat = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => undefined), beatMs);
  beat.unref();
  return {
    [Symbol.asyncDispose]: async () => {
      clearInterval(beat);
      await rm(path, { force: true });
    },
  };
}

async function take(path: string): Promise<boolean> {
  try {
    await using file = await open(path, "wx", privateFileMode);
    try {
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

const lookAgainMs = 50;

/** Returns what to say where the holder lives. */
async function removeDead(path: string, folder: string): Promise<AlidadeError | null> {
  const holder = await readFile(path, "utf8").catch(() => null);
  if (holder === null) return null;
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
  const quietMs = Date.now() - mtimeMs;
  const [host, owner = ""] = holder.split(" ");
  const isHere = host === (await hostId());
  const isAlive = holder === "" ? quietMs < emptyForMs : isHere ? await isOwnerAlive(owner) : quietMs < deadAfterMs;
  if (isAlive) {
    const who = `process ${owner.split(":")[0] || "unknown"}${isHere || holder === "" ? "" : " of another machine or container"}`;
    return new AlidadeError("config_invalid", `${who} is at work in ${folder}: wait for it, or name another folder`, { param: "out" });
  }
  await removeIfStill(path, holder);
  return null;
}

/**
 * Of several that see a dead lock one at a time may remove it, and only while it is that one: by then it may be the lock
 * of whoever removed it first.
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
