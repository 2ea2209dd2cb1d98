/**
 * A container's layer from the folders of its overlay, where this process can read them: what the engine would say, at the
 * price of what changed. The agent chose what lies there: every folder is opened from the one above it, and no link is
 * followed.
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { posix } from "node:path";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError } from "../../../base/errors.ts";
import type { PathStat } from "../path-stat.ts";
import type { ArchiveEntry, ArchiveRead, LayerSource } from "./layer-source.ts";
import { inside, isMissing, lstatAt, overlayChanges } from "./overlay-changes.ts";
import { openFolder, overlayMounts } from "./overlay-mounts.ts";

/** null where the engine has to be asked. */
export async function overlayLayer(
  docker: Docker,
  container: Docker.Container,
  signal?: AbortSignal,
): Promise<(LayerSource & AsyncDisposable) | null> {
  const mounts = await overlayMounts(docker, container, signal);
  if (mounts === null) return null;
  const folders = new OpenFolders(mounts.merged);
  /** All that lies in the layer and may be asked for. */
  const names: string[] = [];
  return {
    async *changed(asked) {
      for await (const { path, kind } of overlayChanges(mounts, asked, signal)) {
        if (kind !== "deleted") names.push(path);
        if (kind !== null) yield [path, kind];
      }
    },
    stat: async (path) => pathStatIn(folders, path),
    archive: (read) => archive(folders, names, read, signal),
    [Symbol.asyncDispose]: async () => {
      folders[Symbol.dispose]();
      mounts[Symbol.dispose]();
    },
  };
}

/** Descriptors of the folders above one path. The next path is mostly a neighbour's. */
class OpenFolders implements Disposable {
  readonly #root: number;
  readonly #open: { name: string; folder: number }[] = [];

  constructor(root: number) {
    this.#root = root;
  }

  /** null where a part of the path is no folder. */
  above(path: string): number | null {
    const parts = path.split("/").slice(1, -1);
    const same = this.#open.findIndex(({ name }, at) => name !== parts[at]);
    this.#closeFrom(same === -1 ? Math.min(this.#open.length, parts.length) : same);
    for (const name of parts.slice(this.#open.length)) {
      try {
        this.#open.push({ name, folder: openFolder(inside(this.#last(), name)) });
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    }
    return this.#last();
  }

  #last(): number {
    return this.#open.at(-1)?.folder ?? this.#root;
  }

  #closeFrom(at: number): void {
    for (const { folder } of this.#open.splice(at)) closeSync(folder);
  }

  [Symbol.dispose](): void {
    this.#closeFrom(0);
  }
}

function statOf(folders: OpenFolders, path: string) {
  const folder = folders.above(path);
  const found = folder === null ? null : lstatAt(folder, posix.basename(path));
  return folder === null || found === null ? null : { folder, found, mode: Number(found.mode) & 0o7777 };
}

function pathStatIn(folders: OpenFolders, path: string): PathStat | null {
  const stat = statOf(folders, path);
  return stat && { isFolder: stat.found.isDirectory(), mode: stat.mode, mtime: secondsOf(stat.found.mtimeNs) };
}

/** Archives know times by the second. */
function secondsOf(nanoseconds: bigint): Date {
  return new Date(Number(nanoseconds / 1_000_000_000n) * 1000);
}

/** Files between two waits. */
const batch = 16;

async function* archive(
  folders: OpenFolders,
  names: string[],
  { path, whole }: ArchiveRead,
  signal: AbortSignal | undefined,
): AsyncGenerator<ArchiveEntry> {
  /** By device and inode, for the first name of a file. */
  const firsts = new Map<string, string>();
  const asked = whole ? inOrder(names.filter((name) => name === path || path === "/" || name.startsWith(`${path}/`))) : [path];
  for (const [at, name] of asked.entries()) {
    if (at % batch === 0) await yieldToOthers();
    signal?.throwIfAborted();
    const stat = statOf(folders, name);
    if (stat === null) continue;
    const { folder, found, mode } = stat;
    const owner = { uid: Number(found.uid), gid: Number(found.gid) };
    const rest = { path: name, mode, owner, mtime: secondsOf(found.mtimeNs), size: 0, target: null, content: null };
    const key = `${found.dev} ${found.ino}`;
    const first = found.nlink > 1 && !found.isDirectory() && !found.isSocket() ? firsts.get(key) : undefined;
    firsts.set(key, first ?? name);
    if (first !== undefined) yield { ...rest, type: "hardlink", target: first };
    else if (found.isDirectory()) yield { ...rest, type: "folder" };
    else if (found.isSymbolicLink()) yield { ...rest, type: "link", target: readlinkSync(inside(folder, posix.basename(name)), "utf8") };
    else if (found.isFile())
      yield { ...rest, type: "file", size: Number(found.size), content: contentOf(folder, name, found.size, signal) };
    else yield { ...rest, type: null };
  }
}

/** As a walk meets them: a folder, what is in it, and then its neighbours, by the bytes of their names. */
function inOrder(names: string[]): string[] {
  const keys = names.map((name) => ({ name, key: Buffer.from(name.replaceAll("/", "\0")) }));
  return keys.sort((a, b) => Buffer.compare(a.key, b.key)).map(({ name }) => name);
}

const chunkBytes = 64 * 1024;

/** Opened when it is read. Never waits for a pipe that took the file's place, and never reads more than was counted. */
async function* contentOf(folder: number, path: string, size: bigint, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
  const file = openSync(inside(folder, posix.basename(path)), flags);
  let left = Number(size);
  try {
    const found = fstatSync(file, { bigint: true });
    if (!found.isFile() || found.size !== size) throw changedMeanwhile(path);
    while (left > 0) {
      const chunk = Buffer.alloc(Math.min(left, chunkBytes));
      const read = readSync(file, chunk, 0, chunk.length, null);
      if (read === 0) throw changedMeanwhile(path);
      left -= read;
      yield chunk.subarray(0, read);
      signal?.throwIfAborted();
    }
  } finally {
    closeSync(file);
  }
}

function changedMeanwhile(path: string): AlidadeError {
  return new AlidadeError("sandbox_error", `The file ${path} of the sandbox changed while it was read.`);
}
