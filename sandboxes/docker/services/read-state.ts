/** What a service's `state` names, read from outside through the engine's archives. Nothing of the service is run for it. */
import { posix } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type Docker from "dockerode";
import { AlidadeError } from "../../../base/errors.ts";
import type { TreeFile } from "../../../base/files/file-tree.ts";
import { readTar } from "../../../base/files/read-tar.ts";
import type { StateOptions } from "../../sandbox.ts";
import { pauseContainer, statusOf } from "../client.ts";
import { getFiles, readError } from "../container-files.ts";
import { engineTraits } from "../engine-traits.ts";
import { pathStat } from "../path-stat.ts";

/** The bounds of one service: all of it is held in memory, and databases in it are compared row by row. */
const stateBounds = { max_files: 20_000, max_bytes: 128 * 1024 * 1024 };

/** How long a service may write down what it holds after it was asked to end. */
const endSeconds = 10;

/** Beside a database that is named alone: what was not yet moved into it, and the journal of a transaction that has not ended. */
const besides = ["", "-wal", "-journal"];

/** Regular files by their absolute paths without the first slash, sorted. What is not there is left out. */
export async function readState(
  docker: Docker,
  container: Docker.Container,
  { paths, disk_mb }: { paths: readonly string[]; disk_mb: number },
  { end, signal }: StateOptions,
): Promise<TreeFile[]> {
  if (end) await stop(container);
  const isPaused = !end && (await container.inspect()).State.Running;
  // Else a database could be read half before and half after a write.
  if (isPaused) await pauseContainer(container);
  try {
    return await filesAt(docker, container, paths, disk_mb, signal);
  } finally {
    if (isPaused) await container.unpause();
  }
}

/** Sends the stop signal of the image (SIGTERM by default), and kills after `endSeconds`. A service that has ended is no error. */
async function stop(container: Docker.Container): Promise<void> {
  try {
    await container.stop({ t: endSeconds });
  } catch (error) {
    if (statusOf(error) !== 304) throw error;
  }
}

async function filesAt(docker: Docker, container: Docker.Container, paths: readonly string[], disk_mb: number, signal: AbortSignal) {
  const mayBeCut = !(await engineTraits(docker)).faithfulArchives;
  const left = { ...stateBounds };
  const found = new Map<string, TreeFile>();
  for (const named of paths)
    for (const path of besides.map((suffix) => `${named}${suffix}`)) {
      signal.throwIfAborted();
      const stat = await pathStat(container, path);
      if (stat === null) continue;
      const files = stat.isFolder
        ? (await getFiles(container, path, left, { skip: [], disk: disk_mb * 1024 ** 2 + left.max_bytes, mayBeCut })).map((file) => ({
            ...file,
            path: posix.join(path, file.path).slice(1),
          }))
        : await fileAlone(container, path, left.max_bytes);
      for (const file of files) {
        found.set(file.path, file);
        left.max_bytes -= file.content.length;
      }
      left.max_files -= files.length;
      // Only a file may be a database with a log beside it.
      if (stat.isFolder) break;
    }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** [] for what is no regular file. */
async function fileAlone(container: Docker.Container, path: string, room: number): Promise<TreeFile[]> {
  try {
    const archive = await container.getArchive({ path });
    for await (const { header, content } of readTar(archive as Readable)) {
      const { type, size = 0, mode = 0o644 } = header;
      if (type !== "file") return [];
      if (size > room)
        throw new AlidadeError("output_too_large", `The file ${path} of a service has ${size} bytes: more than the ${room} that are read.`);
      return [{ path: path.slice(1), mode, content: await buffer(content) }];
    }
    return [];
  } catch (error) {
    throw readError(error, path);
  }
}
