/** A container's layer as the engine tells it: its list of changes, and archives that it packs. */
import { posix } from "node:path";
import { addAbortSignal, type Readable } from "node:stream";
import type Docker from "dockerode";
import type { LayerBounds } from "../../../base/files/layer-bounds.ts";
import { readTar } from "../../../base/files/read-tar.ts";
import { statusOf } from "../client.ts";
import { assertNotCut } from "../container-files.ts";
import { pathStat } from "../path-stat.ts";
import { changedPaths } from "./layer-paths.ts";
import type { ArchiveEntry, ArchiveRead, LayerSource } from "./layer-source.ts";

/** What an archive brings along and no layer holds must be read past: it is bounded. */
export type ReadPast = {
  isPart: (path: string) => boolean;
  bounds: LayerBounds;
  /** Bytes that image, layer and places can hold: what is more is holes. */
  most: number;
  /** An archive of this engine may end early. */
  mayBeCut: boolean;
};

export function engineLayer(docker: Docker, container: Docker.Container, past: ReadPast, signal?: AbortSignal): LayerSource {
  return {
    async *changed() {
      yield* await changedPaths(docker, container.id);
    },
    stat: (path) => pathStat(container, path),
    archive: (read) => archive(container, read, past, signal),
  };
}

const types = new Map<string, ArchiveEntry["type"]>([
  ["file", "file"],
  ["directory", "folder"],
  ["symlink", "link"],
  ["link", "hardlink"],
]);

async function* archive(
  container: Docker.Container,
  { path: from, whole }: ArchiveRead,
  { isPart, bounds, most, mayBeCut }: ReadPast,
  signal: AbortSignal | undefined,
): AsyncGenerator<ArchiveEntry> {
  const answer = (await container.getArchive({ path: from }).catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw error;
  })) as Readable | null;
  if (answer === null) return;
  if (signal) addAbortSignal(signal, answer);
  for await (const { header, content } of readTar(answer)) {
    const { name, mode = 0, uid = 0, gid = 0, size = 0, mtime = new Date(0), linkname } = header;
    const path = posix.join(posix.dirname(from), name).replace(/(.)\/$/s, "$1");
    const type = types.get(header.type ?? "file") ?? null;
    const target = type === "hardlink" ? posix.join(posix.dirname(from), linkname ?? "") : type === "link" ? (linkname ?? "") : null;
    if (mayBeCut) assertNotCut(path, from);
    if (!isPart(path)) bounds.passes(path, size, most);
    yield { path, type, mode: mode & 0o7777, owner: { uid, gid }, mtime, size, target, content: type === "file" ? content : null };
    if (!whole) return;
  }
}
