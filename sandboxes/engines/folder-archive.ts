/** A folder of this machine as a tarball that is the same for the same files. Owners and modes are kept, as a bind mount shows them. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { packTar, type TarEntry } from "../../base/files/pack-tar.ts";

/** A time that no file of ours has: a folder with it was unpacked to its end, for folders get their times last. */
export const wholeSince = new Date(1_000_000_000_000);

/** Hex sha-256 over paths, types, owners, modes, times, links and contents; and the bytes of the archive. */
export async function hashFolder(folder: string): Promise<{ hash: string; bytes: number }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of packTar(folderEntries(folder, ""))) {
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
