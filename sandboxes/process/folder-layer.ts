/**
 * The layer of a process sandbox: all that is in its folder, for the folder was empty. The calls for one file are
 * synchronous, for each takes a few microseconds and a thread's answer forty; between batches of them other work goes on.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { chmod, opendir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { LayerEntry } from "../../base/files/layer.ts";
import type { LayerBounds } from "../../base/files/layer-bounds.ts";

export type FolderQuery = {
  /** Paths inside that are no part of the layer. */
  hidden: string[];
  bounds: LayerBounds;
  signal: AbortSignal | undefined;
};

/** Entries between two waits. */
const batch = 16;

/** `files`: the folder that is `/` inside. Links are not followed. */
export async function* folderLayer(files: string, path: string, query: FolderQuery): AsyncGenerator<LayerEntry> {
  let met = 0;
  for await (const entry of entriesAt(files, path, query)) {
    if (++met % batch === 0) await yieldToOthers();
    yield entry;
  }
}

async function* entriesAt(files: string, path: string, query: FolderQuery): AsyncGenerator<LayerEntry> {
  const { hidden, bounds, signal } = query;
  if (hidden.includes(path)) return;
  signal?.throwIfAborted();
  if (path !== "/") bounds.meets(path);
  const place = join(files, path);
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (found === undefined) throw new AlidadeError("not_found", `There is no ${path} in the sandbox.`);
  const { mtime } = found;
  const rest = { path, kind: "added", mode: found.mode & 0o7777, owner: null, mtime, size: 0, target: null, content: null } as const;
  if (found.isSymbolicLink()) yield { ...rest, type: "link", target: readlinkSync(place) };
  else if (found.isDirectory()) {
    if (path !== "/") yield { ...rest, type: "folder" };
    // A folder is read piece by piece: all names of a large one together could fill our memory.
    for await (const entry of await opendir(place, { bufferSize: 256 })) yield* entriesAt(files, join(path, entry.name), query);
  } else if (found.isFile()) {
    const file = openSync(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size } = fstatSync(file);
      bounds.takes(path, size);
      yield { ...rest, type: "file", size, content: contentOf(file, size) };
    } finally {
      closeSync(file);
    }
  }
}

const chunkBytes = 64 * 1024;

/** Never more than was counted. What is shorter by now is refused where it is packed. */
async function* contentOf(file: number, size: number): AsyncGenerator<Buffer> {
  for (let left = size; left > 0; ) {
    const chunk = Buffer.alloc(Math.min(left, chunkBytes));
    const read = readSync(file, chunk, 0, chunk.length, null);
    if (read === 0) return;
    left -= read;
    yield chunk.subarray(0, read);
    if (left > 0) await yieldToOthers();
  }
}

/** `makeFolder`: `mkdir -p` that follows no link. */
export async function putIntoFolder(
  files: string,
  entries: AsyncIterable<LayerEntry>,
  makeFolder: (folder: string) => Promise<void>,
): Promise<void> {
  /** Set when all is in place: a folder may forbid what is written below it. */
  const modes = new Map<string, number>();
  /** The folder of the entry before, which only put something into it. */
  let checked = "";
  let put = 0;
  for await (const entry of entries) {
    if (++put % batch === 0) await yieldToOthers();
    const place = join(files, entry.path);
    // First, as it refuses a link on the way: what is behind one is this machine's.
    if (dirname(place) !== checked) await makeFolder(dirname(place));
    checked = dirname(place);
    const before = lstatSync(place, { throwIfNoEntry: false });
    if (before !== undefined && !(before.isDirectory() && entry.type === "folder")) await rm(place, { recursive: true, force: true });
    if (entry.type === "folder") {
      mkdirSync(place, { recursive: true, mode: 0o700 });
      modes.set(place, entry.mode);
    } else if (entry.type === "link") symlinkSync(entry.target ?? "", place);
    else if (entry.type === "hardlink") linkSync(join(files, entry.target ?? ""), place);
    else if (entry.type === "file") await putFile(place, entry);
  }
  for (const [folder, mode] of modes) await chmod(folder, mode & 0o777);
}

async function putFile(place: string, { content, mode }: LayerEntry): Promise<void> {
  const file = openSync(place, "wx", 0o600);
  try {
    for await (const chunk of content ?? []) for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
    fchmodSync(file, mode & 0o777);
  } finally {
    closeSync(file);
  }
}
