/** A folder of this machine as a tarball that is the same for the same files. Owners and modes are kept, as a bind mount shows them. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";

/** A time that no file of ours has: a folder with it was unpacked to its end, for folders get their times last. */
export const wholeSince = new Date(1_000_000_000_000);

/** Hex sha-256 over paths, types, owners, modes, times, links and contents; and the bytes of the archive. */
export async function hashFolder(folder: string): Promise<{ hash: string; bytes: number }> {
  const archive = pack();
  const hash = createHash("sha256");
  let bytes = 0;
  const filled = fillFrom(archive, folder, "");
  const read = async () => {
    for await (const chunk of archive as AsyncIterable<Buffer>) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  };
  await Promise.all([filled, read()]);
  return { hash: hash.digest("hex"), bytes };
}

/** Fills the archive with all that is in the folder, below `inside`; sockets, pipes and devices are left out. */
export async function fillFrom(archive: Pack, folder: string, inside: string): Promise<void> {
  try {
    await addFolder(archive, folder, inside);
    const { uid, gid, mode } = await lstat(folder);
    archive.entry({ uid, gid, name: `${inside}/`, type: "directory", mode: mode & 0o777, mtime: wholeSince });
    archive.finalize();
  } catch (error) {
    archive.destroy(error as Error);
    throw error;
  }
}

async function addFolder(archive: Pack, folder: string, inside: string): Promise<void> {
  for (const name of (await readdir(folder)).sort()) {
    const [from, to] = [join(folder, name), `${inside}/${name}`];
    const found = await lstat(from);
    const { uid, gid, mtime, size } = found;
    const header = { uid, gid, mtime, name: to, mode: found.mode & 0o777 };
    if (found.isDirectory()) {
      archive.entry({ ...header, name: `${to}/`, type: "directory" });
      await addFolder(archive, from, to);
    } else if (found.isSymbolicLink()) archive.entry({ ...header, type: "symlink", linkname: await readlink(from) });
    else if (found.isFile()) {
      const entry = archive.entry({ ...header, type: "file", size });
      await pipeline(createReadStream(from), entry);
    }
  }
}
