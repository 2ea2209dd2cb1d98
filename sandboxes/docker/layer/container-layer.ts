/** A container's layer in and out, from outside: nothing inside is executed for it. */
import { posix } from "node:path";
import type Docker from "dockerode";
import { AlidadeError } from "../../../base/errors.ts";
import { isBelow } from "../../../base/files/file-tree.ts";
import { deletedEntry, goneEntries } from "../../../base/files/gone-entries.ts";
import type { Change, LayerEntry } from "../../../base/files/layer.ts";
import { LayerBounds } from "../../../base/files/layer-bounds.ts";
import type { TarEntry } from "../../../base/files/pack-tar.ts";
import type { ChangesOptions } from "../../sandbox.ts";
import { graderIds } from "../container.ts";
import { putArchive, readError } from "../container-files.ts";
import { engineTraits } from "../engine-traits.ts";
import { engineLayer } from "./engine-layer.ts";
import { planReads } from "./layer-paths.ts";
import type { ArchiveRead, Kind, LayerSource } from "./layer-source.ts";
import { overlayLayer } from "./overlay-layer.ts";

export type LayerQuery = ChangesOptions & {
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
  /** `overlay`: from the layer's own folders where this process can read them, else from the engine. */
  from: "overlay" | "engine";
};

const noContent = { owner: null, mtime: new Date(0), target: null, content: null };

export async function* containerLayer(docker: Docker, container: Docker.Container, query: LayerQuery): AsyncGenerator<LayerEntry> {
  const { paths, places, hidden, mounts, signal, known = new Map<string, Change>() } = query;
  const bounds = new LayerBounds(query);
  const { faithfulArchives } = await engineTraits(docker);
  const changed = new Map<string, Kind>();
  const kindOf = (path: string) => changed.get(path);
  const engine = (isOurs: (path: string) => boolean) => {
    const isPart = (path: string) => isOurs(path) || mounts.some((mount) => isBelow(path, mount));
    return engineLayer(docker, container, { isPart, bounds, most: query.passed, mayBeCut: !faithfulArchives }, signal);
  };
  await using overlay = query.from === "overlay" ? await overlayLayer(docker, container, signal) : null;
  if (overlay === null && !faithfulArchives)
    throw new AlidadeError(
      "sandbox_error",
      "The folders of the sandbox's layer cannot be read, and Podman's archives lose links and owners.",
    );
  const source = overlay ?? engine((path) => changed.has(path));
  const isHidden = (path: string) => [...hidden, ...places].some((one) => isBelow(path, one));
  for await (const [path, kind] of source.changed(paths)) {
    for (const asked of paths) if (path !== asked && isBelow(asked, path) && (await isGone(source, path, kind))) yield deletedEntry(asked);
    if (!paths.some((asked) => isBelow(path, asked)) || isHidden(path)) continue;
    bounds.meets(path);
    changed.set(path, kind);
    if (kind === "deleted") yield deletedEntry(path);
  }
  const parents = new Set([...changed.keys()].map((path) => posix.dirname(path)));
  for (const read of planReads(changed, paths, [...hidden, ...places])) {
    signal?.throwIfAborted();
    if (!read.whole && parents.has(read.path)) yield* folderAlone(source, bounds, read.path, changed.get(read.path) ?? "modified");
    else yield* readArchive(source, bounds, read, kindOf);
  }
  const isKnown = (path: string) => paths.some((asked) => isBelow(path, asked)) && !isHidden(path) && !changed.has(path);
  yield* knownOnes(
    [...known.values()].filter(({ path }) => isKnown(path)),
    source,
    bounds,
    changed,
  );
  for (const path of paths.filter((asked) => places.some((place) => isBelow(asked, place)))) {
    // What else lies in the place is read past, and bounded.
    const beside = engine((one) => isBelow(one, path));
    const met = new Set<string>();
    // One that follows links, and names a place that is mounted as it likes, packs what is in the whole place.
    const place = faithfulArchives ? null : places.find((one) => isBelow(path, one));
    const found = readArchive(beside, bounds, { path: place ? `${place}/.` : path, whole: true }, (one) => {
      if (!isBelow(one, path)) return undefined;
      bounds.meets(one);
      met.add(one);
      return "added";
    });
    for await (const entry of found) yield faithfulArchives ? entry : { ...entry, owner: null };
    yield* goneEntries(known.values(), (one) => !isBelow(one, path) || met.has(one));
  }
}

/**
 * What differed from the image after the set-up and does not now: it is as in the image again, or gone. Only what the image
 * has too can be the former. `known` in the order of their paths.
 */
async function* knownOnes(
  known: Change[],
  source: LayerSource,
  bounds: LayerBounds,
  changed: Map<string, Kind>,
): AsyncGenerator<LayerEntry> {
  const gone = new Set<string>();
  for (const { path, kind, type } of known) {
    const parent = posix.dirname(path);
    const isBelowGone = gone.has(parent) || (await isGoneAbove(source, path, changed));
    if (isBelowGone || kind === "added") {
      gone.add(path);
      if (!gone.has(parent) && type !== "deleted") yield deletedEntry(path);
      continue;
    }
    let isThere = false;
    for await (const entry of readArchive(source, bounds, { path, whole: false }, () => "modified")) {
      isThere = true;
      yield entry;
    }
    if (!isThere && type !== "deleted") yield deletedEntry(path);
  }
}

/** Whether a folder above a path was removed, or is no folder any more. */
async function isGoneAbove(source: LayerSource, path: string, changed: Map<string, Kind>): Promise<boolean> {
  for (let above = posix.dirname(path); above !== "/"; above = posix.dirname(above)) {
    const kind = changed.get(above);
    if (kind !== undefined && (await isGone(source, above, kind))) return true;
  }
  return false;
}

/** Whether nothing can lie below a path that had something below it. */
async function isGone(source: LayerSource, path: string, kind: Kind): Promise<boolean> {
  return kind === "deleted" || !(await source.stat(path))?.isFolder;
}

/** A folder of which only something inside changed, its mode or its owner. One of the image may be another user's: only an archive says whose. */
async function* folderAlone(source: LayerSource, bounds: LayerBounds, path: string, kind: Kind): AsyncGenerator<LayerEntry> {
  const stat = await source.stat(path).catch((error: unknown) => {
    throw readError(error, path);
  });
  if (stat?.isFolder && kind === "modified") yield* readArchive(source, bounds, { path, whole: false }, () => kind);
  else if (stat?.isFolder) yield { ...noContent, path, type: "folder", kind, mode: stat.mode, size: 0, mtime: stat.mtime };
}

async function* readArchive(
  source: LayerSource,
  bounds: LayerBounds,
  read: ArchiveRead,
  kindOf: (path: string) => Kind | undefined,
): AsyncGenerator<LayerEntry> {
  const came = new Set<string>();
  /** By the first name of a file that is no part of the layer, its other names: alone, an archive has its content. */
  const alone = new Map<string, LayerEntry[]>();
  try {
    for await (const { type, ...entry } of source.archive(read)) {
      const { path, size, target } = entry;
      const kind = kindOf(path);
      if (kind === undefined || type === null) continue;
      if (type === "hardlink" && !came.has(target ?? "")) {
        const others = alone.get(target ?? "") ?? [];
        others.push({ ...entry, type, kind, size: 0 });
        alone.set(target ?? "", others);
        continue;
      }
      came.add(path);
      if (type === "file") bounds.takes(path, size);
      yield { ...entry, type, kind };
    }
  } catch (error) {
    throw readError(error, read.path);
  }
  for (const [first, ...others] of alone.values()) {
    if (first === undefined) continue;
    let isThere = false;
    for await (const entry of readArchive(source, bounds, { path: first.path, whole: false }, kindOf)) {
      isThere = true;
      yield entry;
    }
    // A pipe or a socket has more names too, and is no part of a work.
    if (isThere) for (const other of others) yield { ...other, target: first.path };
  }
}

/** Puts entries at their paths. What names no owner, or one of our own users, is `user`'s. */
export async function putLayer(container: Docker.Container, entries: AsyncIterable<LayerEntry>, user: number): Promise<void> {
  await putArchive(container, "/", tarEntries(entries, { uid: user, gid: user }), "/");
}

type UnixOwner = { uid: number; gid: number };

async function* tarEntries(entries: AsyncIterable<LayerEntry>, own: UnixOwner): AsyncGenerator<TarEntry> {
  for await (const { path, type, mode, owner, mtime, size, target, content } of entries) {
    if (type === "deleted") continue;
    const header = { name: path.slice(1), mode, owner: allowedOwner(owner ?? own, own), mtime };
    if (type === "folder") yield { ...header, name: `${header.name}/`, type: "directory" };
    else if (type === "link") yield { ...header, type: "symlink", linkname: target };
    else if (type === "hardlink") yield { ...header, type: "link", linkname: (target ?? "").slice(1) };
    else yield { ...header, type: "file", size, content };
  }
}

/** Where tests run apart, the work's process changes what its user owns, and the tests load that later. */
function allowedOwner({ uid, gid }: UnixOwner, own: UnixOwner): UnixOwner {
  return { uid: graderIds.has(uid) ? own.uid : uid, gid: graderIds.has(gid) ? own.gid : gid };
}
