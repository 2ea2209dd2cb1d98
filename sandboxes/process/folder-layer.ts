/** The layer of a process sandbox: all that is in its folder, for the folder was empty. */
import { constants, createWriteStream } from "node:fs";
import { chmod, link, lstat, mkdir, open, opendir, readlink, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AlidadeError } from "../../errors.ts";
import type { LayerEntry } from "../../files/layer.ts";
import type { LayerBounds } from "../../files/layer-bounds.ts";

export type FolderQuery = {
  /** Paths inside that are no part of the layer. */
  hidden: string[];
  bounds: LayerBounds;
  signal: AbortSignal | undefined;
};

/** `files`: the folder that is `/` inside. Links are not followed. */
export async function* folderLayer(files: string, path: string, query: FolderQuery): AsyncGenerator<LayerEntry> {
  const { hidden, bounds, signal } = query;
  if (hidden.includes(path)) return;
  signal?.throwIfAborted();
  if (path !== "/") bounds.meets(path);
  const place = join(files, path);
  const found = await lstat(place).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new AlidadeError("not_found", `There is no ${path} in the sandbox.`);
    throw error;
  });
  const { mtime } = found;
  const rest = { path, kind: "added", mode: found.mode & 0o7777, owner: null, mtime, size: 0, target: null, content: null } as const;
  if (found.isSymbolicLink()) yield { ...rest, type: "link", target: await readlink(place) };
  else if (found.isDirectory()) {
    if (path !== "/") yield { ...rest, type: "folder" };
    // A folder is read piece by piece: all names of a large one together could fill our memory.
    for await (const entry of await opendir(place, { bufferSize: 256 })) yield* folderLayer(files, join(path, entry.name), query);
  } else if (found.isFile()) {
    await using handle = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW);
    const { size } = await handle.stat();
    bounds.takes(path, size);
    const content = size === 0 ? Readable.from([]) : handle.createReadStream({ autoClose: false, start: 0, end: size - 1 });
    yield { ...rest, type: "file", size, content };
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
  for await (const entry of entries) {
    const place = join(files, entry.path);
    // First, as it refuses a link on the way: what is behind one is this machine's.
    await makeFolder(dirname(place));
    const before = await lstat(place).catch(() => null);
    if (before !== null && !(before.isDirectory() && entry.type === "folder")) await rm(place, { recursive: true, force: true });
    if (entry.type === "folder") {
      await mkdir(place, { recursive: true, mode: 0o700 });
      modes.set(place, entry.mode);
    } else if (entry.type === "link") await symlink(entry.target ?? "", place);
    else if (entry.type === "hardlink") await link(join(files, entry.target ?? ""), place);
    else if (entry.type === "file") {
      await pipeline(entry.content ?? Readable.from([]), createWriteStream(place, { flags: "wx", mode: 0o600 }));
      await chmod(place, entry.mode & 0o777);
    }
  }
  for (const [folder, mode] of modes) await chmod(folder, mode & 0o777);
}
