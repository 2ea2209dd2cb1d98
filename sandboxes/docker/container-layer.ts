/** A container's layer in and out, as archives that the engine packs and unpacks: nothing inside is executed for it. */
import { posix } from "node:path";
import { addAbortSignal, PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type Docker from "dockerode";
import { extract, pack } from "tar-stream";
import { isBelow } from "../../files/file-tree.ts";
import type { LayerEntry } from "../../files/layer.ts";
import { LayerBounds } from "../../files/layer-bounds.ts";
import { statusOf } from "./client.ts";
import { putArchive, readError } from "./container-files.ts";
import { type ArchiveRead, changedPaths, type Kind, planReads } from "./layer-paths.ts";
import { pathStat } from "./path-stat.ts";

export type LayerQuery = {
  /** Absolute paths; `/` is all of the container's own layer. */
  paths: string[];
  /** Writable places beside the layer (memory file systems): all that is in one is the sandbox's own. */
  places: string[];
  /** Mounts, and what the engine itself changes: never part of a layer. */
  hidden: string[];
  /** Those of `hidden` whose content is read-only and of any size. */
  mounts: string[];
  /** Bytes that the disk holds. */
  disk: number;
  /** Bytes that image, layer and places can hold: what is more is holes. */
  passed: number;
  signal?: AbortSignal;
};

const noContent = { owner: null, mtime: new Date(0), target: null, content: null };

export async function* containerLayer(docker: Docker, container: Docker.Container, query: LayerQuery): AsyncGenerator<LayerEntry> {
  const { paths, places, hidden, disk, signal } = query;
  const bounds = new LayerBounds(disk);
  const from: LayerSource = { container, bounds, query };
  const isAsked = (path: string) => paths.some((asked) => asked === "/" || isBelow(path, asked));
  const isHidden = (path: string) => [...hidden, ...places].some((one) => isBelow(path, one));
  const listed = await changedPaths(docker, container.id);
  const changed = new Map([...listed].filter(([path]) => isAsked(path) && !isHidden(path)));
  for (const [path, kind] of changed) {
    bounds.meets(path);
    if (kind === "deleted") yield { ...noContent, path, type: "deleted", kind, mode: 0, size: 0 };
  }
  const parents = new Set([...changed.keys()].map((path) => posix.dirname(path)));
  for (const read of planReads(changed, paths, [...hidden, ...places])) {
    signal?.throwIfAborted();
    if (!read.whole && parents.has(read.path)) yield* folderAlone(from, read.path, changed.get(read.path) ?? "modified");
    else yield* readArchive(from, read, (path) => changed.get(path));
  }
  for (const path of paths.filter((asked) => places.some((place) => isBelow(asked, place)))) {
    yield* readArchive(from, { path, whole: true }, (found) => {
      bounds.meets(found);
      return "added";
    });
  }
}

/** All users may write: such a folder may belong to the system, and only its archive says to whom. */
const worldWritable = 0o002;

/** A folder of which only something inside changed, or its mode: its archive would be all that is in it. */
async function* folderAlone(from: LayerSource, path: string, kind: Kind): AsyncGenerator<LayerEntry> {
  const stat = await pathStat(from.container, path).catch((error: unknown) => {
    throw readError(error, path);
  });
  if (stat?.isFolder && kind === "modified" && (stat.mode & worldWritable) !== 0)
    yield* readArchive(from, { path, whole: false }, () => kind);
  else if (stat?.isFolder) yield { ...noContent, path, type: "folder", kind, mode: stat.mode, size: 0, mtime: stat.mtime };
}

const types = new Map<string, LayerEntry["type"]>([
  ["file", "file"],
  ["directory", "folder"],
  ["symlink", "link"],
  ["link", "hardlink"],
]);

type LayerSource = { container: Docker.Container; bounds: LayerBounds; query: LayerQuery };

async function* readArchive(
  source: LayerSource,
  { path: from, whole }: ArchiveRead,
  kindOf: (path: string) => Kind | undefined,
): AsyncGenerator<LayerEntry> {
  const { container, bounds, query } = source;
  const came = new Set<string>();
  /** By the first name of a file that is no part of the layer, its other names: alone, an archive has its content. */
  const alone = new Map<string, LayerEntry[]>();
  const answer = (await container.getArchive({ path: from }).catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw readError(error, from);
  })) as Readable | null;
  if (answer === null) return;
  if (query.signal) addAbortSignal(query.signal, answer);
  const archive = extract();
  // A small pipe between, so that leaving early destroys the source and with it the engine's work.
  const feeding = pipeline(answer, new PassThrough(), archive);
  feeding.catch(() => {}); // thrown by the loop below
  try {
    for await (const entry of archive) {
      const { name, type = "file", mode = 0, uid = 0, gid = 0, size = 0, mtime = new Date(0), linkname } = entry.header;
      const path = posix.join(posix.dirname(from), name).replace(/(.)\/$/, "$1");
      const kind = kindOf(path);
      const entryType = types.get(type ?? "");
      const target = entryType === "hardlink" ? posix.join(posix.dirname(from), linkname ?? "") : (linkname ?? null);
      const owner = { uid, gid };
      if (kind === undefined && !query.mounts.some((mount) => isBelow(path, mount))) bounds.passes(path, size, query.passed);
      if (kind !== undefined && entryType === "hardlink" && !came.has(target ?? "")) {
        const others = alone.get(target ?? "") ?? [];
        others.push({ path, type: "hardlink", kind, mode: mode & 0o7777, owner, mtime, size: 0, target, content: null });
        alone.set(target ?? "", others);
      } else if (kind !== undefined && entryType !== undefined) {
        came.add(path);
        if (entryType === "file") bounds.takes(path, size);
        const content = entryType === "file" ? (entry as unknown as AsyncIterable<Buffer>) : null;
        yield { path, type: entryType, kind, mode: mode & 0o7777, owner, mtime, size, target: content ? null : target, content };
      }
      entry.resume();
      if (!whole) return;
    }
    await feeding;
  } catch (error) {
    throw readError(error, from);
  } finally {
    answer.destroy();
    archive.destroy();
  }
  for (const [first, ...others] of alone.values()) {
    if (first === undefined) continue;
    yield* readArchive(source, { path: first.path, whole: false }, kindOf);
    for (const other of others) yield { ...other, target: first.path };
  }
}

/** Puts entries at their paths. Owners are `user`'s where an entry names none. */
export async function putLayer(container: Docker.Container, entries: AsyncIterable<LayerEntry>, user: number): Promise<void> {
  const archive = pack();
  const filled = (async () => {
    for await (const entry of entries) {
      const { path, type, mode, owner, mtime, size, target, content } = entry;
      if (type === "deleted") continue;
      const header = { name: path.slice(1), mode, ...(owner ?? { uid: user, gid: user }), mtime };
      if (type === "folder") archive.entry({ ...header, name: `${header.name}/`, type: "directory" });
      else if (type === "link") archive.entry({ ...header, type: "symlink", linkname: target ?? "" });
      else if (type === "hardlink") archive.entry({ ...header, type: "link", linkname: (target ?? "").slice(1) });
      else await pipeline(Readable.from(content ?? []), archive.entry({ ...header, type: "file", size }));
    }
    archive.finalize();
  })();
  await putArchive(container, "/", archive, filled, "/");
}
