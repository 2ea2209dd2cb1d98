/** How much a layer may hold. What an agent leaves is hostile: each bound throws before more is read. */
import { AlidadeError } from "../errors.ts";
import { deepestFolder, longestPath, mostEntries } from "./file-collector.ts";
import type { Change } from "./layer.ts";

/**
 * An install of dependencies fits: those of large front ends have 40 000 to 60 000 files and half a gigabyte. A work is
 * put into each sandbox that grades it, where each file is made anew, and its tarball is kept.
 */
export const workBounds = { files: 100_000, megabytes: 1024 };
/** Paths of a work, for each file that it may hold: folders, links and what was deleted count too. */
const pathsPerFile = 2;

export type LayerRules = {
  /** Bytes that the sandbox's disk can hold. */
  disk?: number;
  /** `setup`: what a task's own command wrote, which may be a tree of dependencies; only paths and disk bound it. */
  of?: "work" | "setup";
  /** How much a work may hold (`limits.work_files`, `limits.work_mb`); `workBounds` where left out. */
  most?: typeof workBounds;
  /** What a set-up left, by path. It counts only where its size is another one now. */
  known?: ReadonlyMap<string, Change>;
};

export class LayerBounds {
  readonly #mostFiles: number;
  readonly #mostBytes: number;
  readonly #mostPaths: number;
  readonly #known: ReadonlyMap<string, Change>;
  #entries = 0;
  #files = 0;
  #bytes = 0;
  #passed = 0;

  constructor({ disk = Number.POSITIVE_INFINITY, of = "work", most = workBounds, known = new Map() }: LayerRules = {}) {
    const { files, megabytes } = most;
    this.#mostFiles = of === "work" ? files : mostEntries;
    this.#mostPaths = of === "work" ? pathsPerFile * files : mostEntries;
    this.#mostBytes = of === "work" ? Math.min(megabytes * 1024 ** 2, disk) : disk;
    this.#known = known;
  }

  /** Counts a path that differs, once. Throws `output_too_large`; `output_unreadable` for a name that is not UTF-8. */
  meets(path: string): void {
    if (this.#known.has(path)) return;
    this.#entries += 1;
    if (this.#entries > this.#mostPaths) throw tooLarge(`more than ${this.#mostPaths} files and folders (limits.work_files)`);
    if (Buffer.byteLength(path) > longestPath) throw tooLarge(`a path of more than ${longestPath} bytes`);
    if (path.split("/", deepestFolder + 2).length > deepestFolder + 1) throw tooLarge(`more than ${deepestFolder} folders in one another`);
    // Decoding put it there: the file would come out under another name.
    if (path.includes("\ufffd")) throw new AlidadeError("output_unreadable", `The name ${JSON.stringify(path)} is not UTF-8.`);
  }

  /** Counts what is no part of the layer and is read past. Throws for more than `most` bytes: a hole in it is read for ever. */
  passes(path: string, size: number, most: number): void {
    this.#passed += size;
    if (this.#passed > most) throw tooLarge(`beside it more bytes than its disk can hold (at ${path})`);
  }

  /** Counts a file and its bytes before they are read. A file that is all hole has any size. */
  takes(path: string, size: number): void {
    if (this.#known.get(path)?.size === size) return;
    this.#files += 1;
    this.#bytes += size;
    if (this.#files > this.#mostFiles) throw tooLarge(`more than ${this.#mostFiles} files (limits.work_files)`);
    if (this.#bytes > this.#mostBytes) throw tooLarge(`more than ${this.#mostBytes} bytes (limits.work_mb and disk_mb), at ${path}`);
  }
}

function tooLarge(what: string): AlidadeError {
  return new AlidadeError("output_too_large", `The work in the sandbox holds ${what}.`);
}
