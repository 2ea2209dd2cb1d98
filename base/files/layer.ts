/**
 * What an agent changed, as a tarball: files, links, folders, modes and deletions. It is written and read as a stream; in
 * memory are the names, sizes and hashes. A layer is read from outside and nothing of it is executed.
 */
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { z } from "zod";
import { AlidadeError } from "../errors.ts";
import { temporary } from "../host/temporary-folder.ts";
import { hashOf } from "../schema/ids.ts";
import { readJson } from "../schema/read-json.ts";
import { foldersAbove, isExecutable, plainMode, type TreeFile } from "./file-tree.ts";
import { packTar, type TarEntry, type TarHeader } from "./pack-tar.ts";
import { readTar } from "./read-tar.ts";

/** One path of a layer, with its content where it has any. */
export type LayerEntry = {
  /** Absolute inside the sandbox, normal. */
  path: string;
  /** `hardlink`: a second name of a file that came before. */
  type: "file" | "folder" | "link" | "hardlink" | "deleted";
  /** Against what the sandbox was made from. */
  kind: "added" | "modified" | "deleted";
  /** Permission bits, set-id and sticky bits too. */
  mode: number;
  /** null: the sandbox's own user. */
  owner: { uid: number; gid: number } | null;
  mtime: Date;
  size: number;
  /** What a link says; of a hardlink the absolute path of the first name. */
  target: string | null;
  /** A file's bytes: read them to their end before you take the next entry. null for all else. */
  content: AsyncIterable<Buffer> | null;
};

/** What a layer says of one path. `sha256`: hex, of a file's content. */
export type Change = Pick<LayerEntry, "path" | "type" | "kind" | "mode" | "size" | "target"> & { sha256: string | null };

export type WorkLayer = {
  /** The tarball on this machine, compressed with gzip: `root/<path>` for each path, then `deleted.json` with the paths that are gone. */
  file: string;
  /** Hex, over paths, types, modes, links and contents: equal works have equal hashes, whenever they were made. */
  sha256: string;
  /** Size of the tarball. */
  bytes: number;
  /** Sorted by path. */
  changes: Change[];
};

/** Read at once where it is compared: what is larger goes to a file first. */
const smallBytes = 64 * 1024;

const prefix = "root";
const deletedName = "deleted.json";
const draftPrefix = ".draft-";

/** What was in a sandbox before a work began, beside what it was made from. By absolute path. */
export type LayerBase = {
  /** Files that were put there. Those that no entry names are gone. */
  delivered?: ReadonlyMap<string, TreeFile>;
  /** Folders that were made for it, with mode 0755. */
  made?: string[];
  /** What a set-up left, in the place of `delivered`. An entry that says the same is no change. */
  known?: ReadonlyMap<string, Change>;
};

/** Writes what differs from a base to `<folder>/<hash>.tar.gz`. */
export async function keepLayer(entries: AsyncIterable<LayerEntry>, folder: string, base: LayerBase = {}): Promise<WorkLayer> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = await mkdtemp(join(folder, draftPrefix));
  try {
    const found = new Map<string, Change>();
    const archive = packTar(changedEntries(entries, found, base, join(draft, "spool")));
    await pipeline(archive, createGzip({ level: 1 }), createWriteStream(join(draft, "layer"), { mode: 0o600 }));
    const changes = sortedByPath(found);
    const sha256 = hashOfWork(changes);
    const file = join(folder, `${sha256}.tar.gz`);
    await rename(join(draft, "layer"), file);
    return { file, sha256, bytes: (await stat(file)).size, changes };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Removes what processes that were killed left of layers they were writing. No other process may write there. */
export async function removeDrafts(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names) if (name.startsWith(draftPrefix)) await rm(join(folder, name), { recursive: true, force: true });
}

/** Decoding replaced what is not UTF-8: the link would lead elsewhere. */
function assertTarget({ path, target }: LayerEntry): void {
  if (target?.includes("\ufffd")) throw new AlidadeError("output_unreadable", `The target of the link ${path} is not UTF-8.`);
}

/** What goes into the tarball, and into `changes`. `spool`: a file for contents that are read twice. */
async function* changedEntries(
  entries: AsyncIterable<LayerEntry>,
  changes: Map<string, Change>,
  base: LayerBase,
  spool: string,
): AsyncGenerator<TarEntry> {
  const { delivered = new Map<string, TreeFile>(), known = new Map<string, Change>() } = base;
  const missing = new Set([...delivered.keys()].filter((path) => !known.has(path)));
  const ours = new Set([...delivered.keys()].flatMap((path) => foldersAbove(path)).concat(base.made ?? []));
  for await (const entry of entries) {
    assertTarget(entry);
    missing.delete(entry.path);
    if (entry.type === "folder" && ours.has(entry.path) && entry.kind === "added" && entry.mode === 0o755) continue;
    const set = known.get(entry.path);
    const given = set === undefined ? delivered.get(entry.path) : undefined;
    const content =
      given && entry.type === "file" && entry.size === given.content.length ? await buffered(entry) : await held(entry, set, spool);
    if (given !== undefined && isSame(given, entry, content)) continue;
    if (set !== undefined && (await isAsSet(set, entry, content, (path) => !changes.has(path) && known.get(path)))) continue;
    const sinceBase = set?.type === "deleted" ? "added" : "modified";
    const kind = entry.type === "deleted" || (given ?? set) === undefined ? entry.kind : sinceBase;
    const hash = createHash("sha256");
    if (entry.type !== "deleted") yield { ...headerOf(entry), content: entry.type === "file" ? hashed(content, hash) : null };
    // The content has been read by now.
    changes.set(entry.path, changeOf({ ...entry, kind }, entry.type === "file" ? hash.digest("hex") : null, changes));
  }
  for (const path of missing) changes.set(path, deletionOf(path));
  const gone = sortedByPath(changes).filter(({ type }) => type === "deleted");
  const deleted = Buffer.from(JSON.stringify(gone.map(({ path }) => path)));
  const owner = { uid: 0, gid: 0 };
  yield { name: deletedName, type: "file", mode: 0o644, owner, mtime: new Date(0), size: deleted.length, content: deleted };
}

/** A second name of a file is told as the file. */
function changeOf({ path, type, kind, mode, size, target }: LayerEntry, sha256: string | null, before: Map<string, Change>): Change {
  const first = type === "hardlink" ? before.get(target ?? "") : undefined;
  const asFile = first !== undefined && { type: first.type, size: first.size, target: null, sha256: first.sha256 };
  return { path, type, kind, mode, size, target, sha256, ...asFile };
}

function deletionOf(path: string): Change {
  return { path, type: "deleted", kind: "deleted", mode: 0, size: 0, target: null, sha256: null };
}

function sortedByPath(changes: Map<string, Change>): Change[] {
  return [...changes.values()].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

function hashOfWork(changes: Change[]): string {
  return hashOf(changes.map(({ path, type, mode, target, sha256 }) => [path, type, mode, target, sha256]));
}

/** A file's bytes, read or not yet. */
type Content = Buffer | LayerEntry["content"];

function buffered({ content }: LayerEntry): Promise<Buffer> {
  return buffer(content ?? Readable.from([]));
}

/** A content that may be what a set-up left, so that it can be read twice. */
async function held(entry: LayerEntry, before: Change | undefined, spool: string): Promise<Content> {
  if (before?.sha256 == null || entry.type !== "file" || before.size !== entry.size) return entry.content;
  if (entry.size <= smallBytes) return buffered(entry);
  await pipeline(Readable.from(entry.content ?? []), createWriteStream(spool, { mode: 0o600 }));
  return { [Symbol.asyncIterator]: () => createReadStream(spool)[Symbol.asyncIterator]() };
}

/**
 * Whether a path is as the set-up left it. Times do not count, as nowhere in a work. `unchanged`: what the set-up left at
 * another path that is as it was.
 */
async function isAsSet(
  before: Change,
  entry: LayerEntry,
  content: Content,
  unchanged: (path: string) => Change | false | undefined,
): Promise<boolean> {
  if (before.type === "deleted" || entry.type === "deleted") return before.type === entry.type;
  if (before.mode !== entry.mode) return false;
  if (entry.type === "hardlink") {
    const first = unchanged(entry.target ?? "");
    return before.sha256 !== null && first !== false && first?.sha256 === before.sha256;
  }
  if (before.type !== entry.type || before.target !== entry.target || before.size !== entry.size) return false;
  return entry.type !== "file" || (await hashOfContent(content)) === before.sha256;
}

async function hashOfContent(content: Content): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of Buffer.isBuffer(content) ? [content] : (content ?? [])) hash.update(chunk);
  return hash.digest("hex");
}

/** Every sandbox writes a delivered file with its plain mode: any other one is the work's. */
function isSame(before: TreeFile, { mode }: LayerEntry, content: Content): boolean {
  return Buffer.isBuffer(content) && content.equals(before.content) && plainMode(before.mode) === mode;
}

async function* hashed(content: Content, hash: ReturnType<typeof createHash>): AsyncGenerator<Buffer> {
  for await (const chunk of Buffer.isBuffer(content) ? [content] : (content ?? [])) {
    hash.update(chunk);
    yield chunk;
  }
}

const tarTypes = { file: "file", folder: "directory", link: "symlink", hardlink: "link" } as const;

function headerOf(entry: LayerEntry): TarHeader {
  const { path, mode, owner, mtime, size, target } = entry;
  const type = tarTypes[entry.type as keyof typeof tarTypes];
  return {
    name: `${prefix}${path}${type === "directory" ? "/" : ""}`,
    type,
    mode,
    owner: owner ?? { uid: 65534, gid: 65534 },
    // Nothing here tells whose it is: said in words, which readers of tarballs show.
    uname: owner === null ? ownUser : "",
    mtime: new Date(Math.min(Math.max(0, mtime.getTime()), latest)),
    size: type === "file" ? size : 0,
    linkname: entry.type === "hardlink" ? `${prefix}${target}` : target,
  };
}

const ownUser = "agent";
/** Times outside of these have no place in the tarball's header: it would not be read back. */
const latest = (2 ** 31 - 1) * 1000;

const Deleted = z.array(z.string());

/**
 * A work that was kept in `folder`. Its tarball does not tell what became of a path that is there: `kind` is "added" for
 * each. Throws `not_found` where it is not there, and `store_error` where it is damaged.
 */
export async function openLayer(folder: string, sha256: string): Promise<WorkLayer> {
  const file = join(folder, `${sha256}.tar.gz`);
  const bytes = await stat(file).then(
    ({ size }) => size,
    () => null,
  );
  if (bytes === null)
    throw new AlidadeError("not_found", `there is no ${file}: a work of a run over a service stays in blobs/ of the machine that made it`);
  const changes = new Map<string, Change>();
  const onDeleted = (paths: string[]): void => {
    for (const path of paths) changes.set(path, deletionOf(path));
  };
  const damaged = (cause?: unknown) => new AlidadeError("store_error", `${file} is damaged`, { cause });
  try {
    for await (const entry of readLayer({ file, changes: [] }, onDeleted)) {
      changes.set(entry.path, changeOf(entry, entry.type === "file" ? await hashOfContent(entry.content) : null, changes));
    }
  } catch (error) {
    throw damaged(error);
  }
  const sorted = sortedByPath(changes);
  if (hashOfWork(sorted) !== sha256) throw damaged();
  return { file, sha256, bytes, changes: sorted };
}

/** What a layer holds, without what is deleted, in the order of its tarball. */
export async function* readLayer(
  layer: Pick<WorkLayer, "file" | "changes">,
  onDeleted?: (paths: string[]) => void,
): AsyncGenerator<LayerEntry, void, undefined> {
  const kinds = new Map(layer.changes.map(({ path, kind }) => [path, kind]));
  for await (const { header, content: bytes } of readTar(createReadStream(layer.file), createGunzip())) {
    const { name, type, mode = 0, uid = 0, gid = 0, uname, mtime = new Date(0), size = 0, linkname } = header;
    const path = name.slice(prefix.length).replace(/\/$/, "");
    const found = Object.entries(tarTypes).find(([, tar]) => tar === type)?.[0] as LayerEntry["type"] | undefined;
    if (name === deletedName && onDeleted) onDeleted(Deleted.parse(readJson(await text(bytes))));
    else if (name.startsWith(`${prefix}/`) && found !== undefined) {
      if (posix.normalize(path) !== path)
        throw new AlidadeError("output_unreadable", `The work names ${JSON.stringify(path)}, which is no normal path.`);
      const target = linkname === undefined || linkname === null ? null : found === "hardlink" ? linkname.slice(prefix.length) : linkname;
      const content = found === "file" ? bytes : null;
      const owner = uname === ownUser ? null : { uid, gid };
      yield { path, type: found, kind: kinds.get(path) ?? "added", mode, owner, mtime, size, target, content };
    }
  }
}

/** A folder for layers that are needed for a moment. */
export async function temporaryLayers(): Promise<AsyncDisposable & { folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), temporary.layers));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

/** The changes that make `files` of `base`, below `folder`. */
export async function* changesBetween(base: TreeFile[], files: TreeFile[], folder: string): AsyncGenerator<LayerEntry, void, undefined> {
  const before = new Map(base.map((file) => [file.path, file]));
  const after = new Set(files.map(({ path }) => path));
  const rest = { owner: null, mtime: new Date(0), target: null };
  for (const path of before.keys())
    if (!after.has(path)) yield { ...rest, path: `${folder}/${path}`, type: "deleted", kind: "deleted", mode: 0, size: 0, content: null };
  for (const { path, content, mode } of files) {
    const old = before.get(path);
    if (old?.content.equals(content) && isExecutable(old) === isExecutable({ path, content, mode })) continue;
    const kind = old === undefined ? "added" : "modified";
    yield { ...rest, path: `${folder}/${path}`, type: "file", kind, mode, size: content.length, content: Readable.from([content]) };
  }
}
