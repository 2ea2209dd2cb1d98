/** A published package, packed by tar and gzip: its regular files in memory, bounded, without the outer folder. */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { createGunzip } from "node:zlib";
import { AlidadeError } from "../../base/errors.ts";
import { insidePath, plainMode, type TreeFile } from "../../base/files/file-tree.ts";
import { readTar } from "../../base/files/read-tar.ts";

/** Packages that tasks are made from are small; a larger one is a mistake or an attack. */
const bounds = { files: 5_000, entries: 50_000, bytes: 100 * 1024 * 1024 };

/** Links and what leads outside are left out; of two files at one path the last one counts. Throws `task_invalid`. */
export async function readTarball(tarball: Buffer): Promise<TreeFile[]> {
  const files = new Map<string, TreeFile>();
  let [count, bytes] = [0, 0];
  for await (const { header, content } of readTar(Readable.from([tarball]), createGunzip())) {
    const { name, type, size = 0, mode = 0 } = header;
    const path = insidePath(name.split("/").slice(1).join("/"));
    count++;
    if (count > bounds.entries) throw tooLarge();
    if (type === "file" && path !== null) {
      bytes += size;
      if (files.size >= bounds.files || bytes > bounds.bytes) throw tooLarge();
      files.set(path, { path, content: await buffer(content), mode: plainMode(mode) });
    }
  }
  return [...files.values()];
}

function tooLarge(): AlidadeError {
  return new AlidadeError("task_invalid", `the package is larger than ${bounds.files} files or ${bounds.bytes} bytes`);
}
