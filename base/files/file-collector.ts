/** The rules for what comes out of a sandbox, the same for every backend: bounded, inside the folder, files only. */
import { posix } from "node:path";
import { AlidadeError } from "../errors.ts";
import type { TreeFile } from "./file-tree.ts";
import { insidePath, isBelow, isInside, plainMode } from "./file-tree.ts";

/** More than any task's work tree holds; what is larger was made to fill our memory. */
const defaultBounds = { max_files: 20_000, max_bytes: 512 * 1024 * 1024 };

/** Files, folders, links and what is left out: ten for each file that is taken. Each of them is looked at. */
export const mostEntries = 200_000;
/** Source trees reach twenty. What is done for each folder above a file is done this often for it. */
export const deepestFolder = 64;
/**
 * Half of the longest path that Linux opens. A reader meets a path over this before it meets one that it cannot open, and
 * Docker leaves those out without a word.
 */
export const longestPath = 2_048;

export class FileCollector {
  readonly #folder: string;
  readonly #maxFiles: number;
  readonly #maxBytes: number;
  readonly #exclude: string[];
  readonly #skip: string[];
  readonly #files = new Map<string, TreeFile>();
  readonly #disk: number;
  #bytes = 0;
  #passed = 0;
  #entries = 0;

  /** `skip`: absolute paths of mounts; their content is not collected. `disk`: bytes that the folder's disk can hold. */
  constructor(
    folder: string,
    bounds: { max_files?: number; max_bytes?: number; exclude?: string[] },
    skip: string[] = [],
    disk = Number.POSITIVE_INFINITY,
  ) {
    this.#folder = folder;
    this.#maxFiles = bounds.max_files ?? defaultBounds.max_files;
    this.#maxBytes = bounds.max_bytes ?? defaultBounds.max_bytes;
    this.#exclude = bounds.exclude ?? [];
    this.#disk = disk;
    this.#skip = skip.map((path) => posix.relative(folder, path)).filter((path) => path !== "" && !path.startsWith(".."));
  }

  /**
   * Counts anything that stands there, once. True where a folder is worth entering, or a file may be taken. Throws
   * `output_too_large` for more entries, a deeper folder or a longer path than any work has.
   */
  meets(path: string): boolean {
    if (this.#isSkipped(path)) return false;
    this.#entries += 1;
    if (this.#entries > mostEntries) throw this.#tooLarge(`more than ${mostEntries} files and folders`);
    // A folder that is left out takes everything below it along.
    if (isInside(path, this.#exclude)) return false;
    if (Buffer.byteLength(path) > longestPath) throw this.#tooLarge(`a path of more than ${longestPath} bytes`);
    if (path.split("/", deepestFolder + 1).length > deepestFolder)
      throw this.#tooLarge(`more than ${deepestFolder} folders in one another`);
    return true;
  }

  #isSkipped(path: string): boolean {
    return this.#skip.some((below) => isBelow(path, below));
  }

  /**
   * Counts a file that is left out but carried past, as archives do. A file that is all hole has any size, and reading
   * past it would take for ever: throws `output_too_large` for more than the disk can hold.
   */
  passes(path: string, size: number): void {
    if (this.#isSkipped(path)) return;
    this.#passed += size;
    this.#checkDisk();
  }

  #checkDisk(): void {
    if (this.#bytes + this.#passed > this.#disk) throw this.#tooLarge(`more than the ${this.#disk} bytes of its disk`);
  }

  /** Counts a file that was met and is about to be read. Throws `output_too_large` before a byte of it is. */
  wants(path: string, size: number): boolean {
    if (insidePath(path) === null) return false;
    this.#bytes += size;
    if (this.#files.size >= this.#maxFiles) throw this.#tooLarge(`more than ${this.#maxFiles} files`);
    if (this.#bytes > this.#maxBytes) throw this.#tooLarge(`more than ${this.#maxBytes} bytes`);
    // Holes and second names are bytes too where they are written again.
    this.#checkDisk();
    return true;
  }

  add(path: string, content: Buffer, mode: number): void {
    this.#files.set(path, { path, content, mode: plainMode(mode) });
  }

  /** A second name of a file; archives carry its content once. */
  addLink(path: string, target: string): void {
    const file = this.#files.get(target);
    if (file !== undefined && this.wants(path, file.content.length)) this.add(path, file.content, file.mode);
  }

  files(): TreeFile[] {
    return [...this.#files.values()].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  }

  #tooLarge(what: string): AlidadeError {
    return new AlidadeError("output_too_large", `The folder ${this.#folder} in the sandbox holds ${what}.`);
  }
}

/** The path itself; throws `request_invalid` for one that would leave its folder. */
export function checkedPath(path: string): string {
  if (insidePath(path) !== null) return path;
  throw new AlidadeError("request_invalid", `The path ${JSON.stringify(path)} must be relative and stay inside its folder.`, {
    param: "path",
  });
}
