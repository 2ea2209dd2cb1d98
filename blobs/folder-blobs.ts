/** Blobs as files of one folder. */
import { randomInt } from "node:crypto";
import { access, mkdir, open, readdir, readFile, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AlidadeError, messageOf } from "../errors.ts";
import type { Blobs } from "./blobs.ts";
import { assertKey, assertName } from "./keys.ts";

export class FolderBlobs implements Blobs {
  readonly place: string;

  constructor(folder: string) {
    this.place = folder;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const path = this.#path(key);
    // Two containers may have one pid, and one process may put a key twice at once.
    const draft = `${path}.${process.pid}.${randomInt(2 ** 47)}.new`;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await write(draft, bytes);
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

  async removeBelow(name: string): Promise<void> {
    assertName(name);
    const folder = join(this.place, name);
    await rm(folder, { recursive: true, force: true }).catch((error: unknown) => {
      throw new AlidadeError("store_error", `${folder} cannot be removed: ${messageOf(error)}`, { cause: error });
    });
    // Its set's, where it was the last one of it.
    await rmdir(dirname(folder)).catch(() => undefined);
  }

  #path(key: string): string {
    assertKey(key);
    return join(this.place, key);
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

async function write(path: string, bytes: Uint8Array): Promise<void> {
  await using file = await open(path, "w", 0o600);
  await file.writeFile(bytes);
  await file.sync();
}

function asStoreError(path: string, error: unknown): AlidadeError {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT"
    ? new AlidadeError("store_full", `no space left to record at ${path}: free some space; nothing recorded so far is lost`, {
        cause: error,
      })
    : new AlidadeError("store_error", `cannot write ${path}: ${messageOf(error)}`, { cause: error });
}
