/** Files in and out of a container, as archives that the engine packs and unpacks: nothing inside is executed for it. */
import { posix } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError, messageOf } from "../../base/errors.ts";
import { checkedPath, FileCollector, longestPath } from "../../base/files/file-collector.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { foldersAbove, plainMode } from "../../base/files/file-tree.ts";
import { packTar, type TarEntry } from "../../base/files/pack-tar.ts";
import { readTar } from "../../base/files/read-tar.ts";
import { statusOf } from "./client.ts";

/** Writes below `folder`; folders that are missing below `place`, which holds it, are made. All of it is the user's. */
export async function putFiles(container: Docker.Container, place: string, folder: string, files: TreeFile[], user: number): Promise<void> {
  await putArchive(container, place, entriesOf(files, posix.relative(place, folder), user), folder);
}

function* entriesOf(files: TreeFile[], below: string, user: number): Generator<TarEntry> {
  const folders = new Set<string>();
  const whose = { owner: { uid: user, gid: user }, mtime: new Date() };
  for (const { path, mode, content } of files) {
    const name = posix.join(below, checkedPath(path));
    for (const parent of foldersAbove(name)) {
      if (folders.has(parent)) continue;
      folders.add(parent);
      yield { ...whose, name: `${parent}/`, type: "directory", mode: 0o755 };
    }
    yield { ...whose, name, type: "file", mode: plainMode(mode), size: content.length, content };
  }
}

/** Has the engine unpack entries below `place`. What fails while they are made is thrown, and ends the request. */
export async function putArchive(
  container: Docker.Container,
  place: string,
  entries: AsyncIterable<TarEntry> | Iterable<TarEntry>,
  folder: string,
): Promise<void> {
  const archive = Readable.from(packTar(entries), { objectMode: false });
  try {
    await container.putArchive(archive, { path: place });
  } catch (error) {
    throw writeError(error, folder);
  } finally {
    // An engine that refuses has not read all.
    archive.destroy();
  }
}

function writeError(error: unknown, folder: string): AlidadeError {
  if (/no space left on device|disk quota exceeded/i.test(messageOf(error))) {
    return new AlidadeError(
      "sandbox_disk_full",
      `The sandbox's disk is full: no space left to write below ${folder} (raise limits.disk_mb).`,
      { cause: error },
    );
  }
  return goneOr(error, `Writing files below ${folder}: `);
}

/**
 * Throws `output_too_large` for a path after which Podman's archive may end: it packs nothing more where it meets one that
 * it cannot open, and says nothing. Half of that is met before.
 */
export function assertNotCut(path: string, folder: string): void {
  if (Buffer.byteLength(path) <= longestPath) return;
  throw new AlidadeError("output_too_large", `The folder ${folder} in the sandbox holds a path of more than ${longestPath} bytes.`);
}

export type FileBounds = { max_files?: number; max_bytes?: number; exclude?: string[] };

/**
 * Regular files below `folder`, sorted by path. Links, devices and what lies below `skip` are left out. `disk`: bytes
 * that the writable places there hold. `mayBeCut`: an archive of this engine may end early.
 */
export async function getFiles(
  container: Docker.Container,
  folder: string,
  bounds: FileBounds,
  { skip, disk, mayBeCut }: { skip: string[]; disk: number; mayBeCut: boolean },
): Promise<TreeFile[]> {
  const collector = new FileCollector(folder, bounds, skip, disk);
  // The trailing "/." archives what is in the folder, also where its last part is a link.
  const source = await container.getArchive({ path: `${folder}/.` }).catch((error: unknown) => {
    if (statusOf(error) === 404) throw new AlidadeError("not_found", `There is no folder ${folder} in the sandbox.`, { cause: error });
    throw goneOr(error, `Reading files below ${folder}: `);
  });
  try {
    for await (const { header, content } of readTar(source as Readable)) {
      const path = posix.normalize(header.name).replace(/\/$/, "");
      const { type, size = 0, mode = 0, linkname } = header;
      if (mayBeCut) assertNotCut(path, folder);
      const isWanted = path === "." || collector.meets(path);
      if (type === "link" && isWanted) collector.addLink(path, posix.normalize(linkname ?? ""));
      else if (type === "file" && isWanted && collector.wants(path, size)) collector.add(path, await buffer(content), mode);
      else collector.passes(path, size);
    }
  } catch (error) {
    throw goneOr(error, `Reading files below ${folder}: `);
  }
  return collector.files();
}

export function readError(error: unknown, folder: string): AlidadeError {
  return goneOr(error, `Reading below ${folder}: `);
}

function goneOr(error: unknown, prefix: string): AlidadeError {
  const status = statusOf(error);
  if (status === 404 || status === 409)
    return new AlidadeError("sandbox_died", `${prefix}the sandbox's container is gone: ${messageOf(error)}`, { cause: error });
  return asAlidadeError(error, "sandbox_error", prefix);
}
