/** Blobs as files of one folder. */
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AlidadeError, messageOf } from "../errors.ts";
import type { Blobs } from "./blobs.ts";

/** A key is ours, made of ids; anything else could lead out of the folder. */
const safeKey = /^[A-Za-z0-9_-]+(?:\/[A-Za-z0-9_-]+){0,3}(?:\.[a-z]+){1,2}$/;

export class FolderBlobs implements Blobs {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    const path = this.#path(key);
    const draft = `${path}.${process.pid}.new`;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await write(draft, bytes);
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw asStoreError(path, error);
    }
  }

  async get(key: string): Promise<Buffer> {
    const path = this.#path(key);
    return readFile(path).catch((error: unknown) => {
      throw new AlidadeError("store_error", `${path} cannot be read: ${messageOf(error)}`, { cause: error });
    });
  }

  #path(key: string): string {
    if (!safeKey.test(key)) throw new AlidadeError("internal", `"${key}" is no key of a blob`);
    return join(this.#folder, key);
  }
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
