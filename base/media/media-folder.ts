/** Pictures as files of a folder, each named by its hash. */
import { hash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AlidadeError, messageOf } from "../errors.ts";
import type { Media } from "./media.ts";

/** Beside the logs of a run's sessions. */
export const mediaFolder = "media";

/** After this time the file is looked for again. Old pictures are removed after days. */
const believedMs = 60_000;

/** Hashes that are remembered; forgetting them costs a look at a file each. */
const mostKnown = 100_000;

const names = /^[0-9a-f]{64}$/;

export class MediaFolder implements Media {
  readonly folder: string;
  /** Those that this process has seen there, and when: a harness sends each picture with every turn. */
  readonly #known = new Map<string, number>();

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Written under another name first, so that a process that dies leaves no half of a picture under a hash. */
  keep(sha256: string, bytes: Buffer): void {
    const path = this.#path(sha256);
    const now = Date.now();
    if (now - (this.#known.get(sha256) ?? 0) < believedMs) return;
    try {
      // A machine that went down can leave other bytes under the name, even as many. They would fail every later call.
      const found = statSync(path, { throwIfNoEntry: false })?.size === bytes.length && hash("sha256", readFileSync(path)) === sha256;
      // What removes old pictures goes by this time.
      if (found) utimesSync(path, now / 1000, now / 1000);
      else {
        mkdirSync(this.folder, { recursive: true, mode: 0o700 });
        const draft = `${path}.${process.pid}.new`;
        writeFileSync(draft, bytes, { mode: 0o600 });
        renameSync(draft, path);
      }
      if (this.#known.size > mostKnown) this.#known.clear();
      this.#known.set(sha256, now);
    } catch (error) {
      throw storeError(path, error);
    }
  }

  read(sha256: string): Buffer {
    const path = this.#path(sha256);
    const bytes = bytesOf(path);
    if (hash("sha256", bytes) !== sha256) throw new AlidadeError("store_error", `the picture ${path} is damaged: its hash is another one`);
    return bytes;
  }

  #path(sha256: string): string {
    if (!names.test(sha256)) throw new AlidadeError("not_found", `no picture is named "${sha256.slice(0, 100)}"`);
    return join(this.folder, sha256);
  }
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw storeError(path, error);
    throw new AlidadeError("not_found", `the picture ${path} is not there: copy the folder ${mediaFolder} with the records that name it`);
  }
}

function storeError(path: string, error: unknown): AlidadeError {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new AlidadeError("store_full", `no space left for the picture ${path}: free some space`, { cause: error });
  return new AlidadeError("store_error", `cannot keep or read the picture ${path}: ${messageOf(error)}`, { cause: error });
}
