/** Blobs as files of one folder. */
import { randomInt } from "node:crypto";
import { access, type FileHandle, mkdir, open, readdir, readFile, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { OwnBlobs } from "./blobs.ts";
import { assertKey, assertName, isLogUpTo, logsFolder } from "./keys.ts";

export class FolderBlobs implements OwnBlobs {
  readonly place: string;

  constructor(folder: string) {
    this.place = folder;
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.#write(key, (file) => file.writeFile(bytes));
  }

  putPieces(key: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#write(key, async (file) => {
      for await (const piece of pieces) await file.appendFile(piece);
    });
  }

  async #write(key: string, fill: (file: FileHandle) => Promise<void>): Promise<void> {
    const path = this.#path(key);
    // Two containers may have one pid, and one process may put a key twice at once.
    const draft = `${path}.${process.pid}.${randomInt(2 ** 47)}.new`;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await write(draft, fill);
      await rename(draft, path).catch((error: unknown) => assertThere(path, error));
      if (dirname(key) !== ".") await removeOlderDrafts(path);
    } catch (error) {
      await rm(draft, { force: true });
      throw asStoreError(path, error);
    }
  }

  async get(key: string): Promise<Buffer | null> {
    const path = this.#path(key);
    return readFile(path).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw new AlidadeError("store_error", `${path} cannot be read: ${messageOf(error)}`, { cause: error });
    });
  }

  async removeBelow(name: string, kept: string | null = null): Promise<void> {
    assertName(name);
    const folder = join(this.place, name);
    if (kept !== null && dirname(kept) === name) return removeFrom(folder, (one) => one !== basename(kept));
    await rm(folder, { recursive: true, force: true }).catch((error: unknown) => {
      throw new AlidadeError("store_error", `${folder} cannot be removed: ${messageOf(error)}`, { cause: error });
    });
    // Its set's, where it was the last one of it.
    await rmdir(dirname(folder)).catch(() => undefined);
  }

  async removeLogs(name: string, attempt: number): Promise<void> {
    assertName(name);
    const folder = join(this.place, name, logsFolder);
    await removeFrom(folder, (one) => isLogUpTo(one, attempt));
    // This fails if a later attempt has copies there.
    await rmdir(folder).catch(() => undefined);
  }

  #path(key: string): string {
    assertKey(key);
    return join(this.place, key);
  }
}

/** Removes drafts too. No reader needs them, because a kept blob is whole. */
async function removeFrom(folder: string, isGone: (name: string) => boolean): Promise<void> {
  try {
    for (const one of await readdir(folder)) if (isGone(one)) await rm(join(folder, one), { recursive: true, force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw new AlidadeError("store_error", `${folder} cannot be cleared: ${messageOf(error)}`, { cause: error });
  }
}

/** A draft that is gone was removed by another put of its attempt. A key is written with one content only, so that one's counts. */
async function assertThere(path: string, error: unknown): Promise<void> {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  await access(path).catch(() => {
    throw error;
  });
}

/**
 * Removes what killed processes left of blobs that they were writing, as far as it can. The folder of a blob is its rollout's, and
 * its name begins with its attempt. An earlier attempt that still writes there was replaced; a later one may be at work.
 */
async function removeOlderDrafts(path: string): Promise<void> {
  const attempt = Number.parseInt(basename(path), 10);
  for (const name of await readdir(dirname(path)).catch(() => []))
    if (/\.\d+\.new$/.test(name) && Number.parseInt(name, 10) <= attempt)
      await rm(join(dirname(path), name), { force: true }).catch(() => undefined);
}

async function write(path: string, fill: (file: FileHandle) => Promise<void>): Promise<void> {
  await using file = await open(path, "w", 0o600);
  await fill(file);
  await file.sync();
}

function asStoreError(path: string, error: unknown): unknown {
  // What the source of the pieces says of itself.
  if (error instanceof AlidadeError) return error;
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT"
    ? new AlidadeError("store_full", `no space left to record at ${path}: free some space; nothing recorded so far is lost`, {
        cause: error,
      })
    : new AlidadeError("store_error", `cannot write ${path}: ${messageOf(error)}`, { cause: error });
}
