/**
 * A folder of this machine by its content, for sandboxes that do not see this machine: a tarball that is the same for the same
 * files, and its hash. Owners and modes are kept, as a bind mount shows them.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { packTar, type TarEntry } from "../base/files/pack-tar.ts";

/** A time that no file of ours has: a folder with it was unpacked to its end, for folders get their times last. */
export const wholeSince = new Date(1_000_000_000_000);

/** `hash`: hex sha-256 of the archive. `bytes`: its length. */
export type FolderContent = { hash: string; bytes: number };

/** By folder. What is mounted does not change while a process lives. */
const known = new Map<string, Promise<FolderContent>>();

/** Returns the name of a folder by its content: paths, types, owners, modes, times, links and bytes. Reads it once a process. */
export function folderContent(folder: string): Promise<FolderContent> {
  const found = known.get(folder) ?? hashFolder(folder);
  known.set(folder, found);
  found.catch(() => known.delete(folder));
  return found;
}

/** Returns the tarball of a folder, with all that is in it below `/`. */
export function folderArchive(folder: string): AsyncIterable<Buffer> {
  return packTar(folderEntries(folder, ""));
}

async function hashFolder(folder: string): Promise<FolderContent> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of folderArchive(folder)) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { hash: hash.digest("hex"), bytes };
}

/** All that is in the folder, below `inside`; sockets, pipes and devices are left out. */
export async function* folderEntries(folder: string, inside: string): AsyncGenerator<TarEntry> {
  yield* entriesIn(folder, inside);
  const { uid, gid, mode } = await lstat(folder);
  yield { name: `${inside}/`, type: "directory", mode: mode & 0o777, owner: { uid, gid }, mtime: wholeSince };
}

async function* entriesIn(folder: string, inside: string): AsyncGenerator<TarEntry> {
  for (const name of (await readdir(folder)).sort()) {
    const [from, to] = [join(folder, name), `${inside}/${name}`];
    const found = await lstat(from);
    const { uid, gid, mtime, size } = found;
    const header = { name: to, mode: found.mode & 0o777, owner: { uid, gid }, mtime };
    if (found.isDirectory()) {
      yield { ...header, name: `${to}/`, type: "directory" };
      yield* entriesIn(from, to);
    } else if (found.isSymbolicLink()) yield { ...header, type: "symlink", linkname: await readlink(from) };
    else if (found.isFile()) yield { ...header, type: "file", size, content: createReadStream(from) };
  }
}
