/** The files that a build may read: a folder of the host without what its `.dockerignore` leaves out, and without ways out of it. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, readFile, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { Readable } from "node:stream";
import { AlidadeError, messageOf } from "../../../../base/errors.ts";
import { deepestFolder, longestPath, mostEntries } from "../../../../base/files/file-collector.ts";
import { insidePath } from "../../../../base/files/file-tree.ts";
import { packTar, type TarEntry } from "../../../../base/files/pack-tar.ts";
import type { Build } from "../../../../base/schema/environment/build.ts";
import { imageParts, wantedImageName } from "../../../../base/schema/environment/image-name.ts";
import { imagesOf } from "./dockerfile.ts";
import { IgnoreFile } from "./ignore-file.ts";

type ContextEntry = {
  /** Relative to the context. */
  path: string;
  type: "file" | "directory" | "symlink";
  mode: number;
  size: number;
  mtime: Date;
  /** What a link says. */
  linkname?: string;
};

export type BuildContext = {
  folder: string;
  /** Sorted by path. */
  entries: ContextEntry[];
  dockerfile: { path: string; text: string };
  /** Hex sha-256 over paths, types, modes, links and contents. */
  sha256: string;
};

/** Sources of a large project with what they vendor. A context over it was named by mistake: the engine stores it twice. */
const maxBytes = 2 * 1024 ** 3;
/** A Dockerfile of a thousand steps is 100 kB. */
const maxDockerfile = 1_000_000;
/** As much of a wrong name as a person needs to find it. */
const mostShown = 200;

/** Throws `task_invalid` for a context that no build may have; the message names the path. Bounded, and nothing of it runs. */
export async function readContext({ context: folder, dockerfile, args }: Build): Promise<BuildContext> {
  try {
    const text = await dockerfileText(folder, dockerfile);
    assertImages(text, dockerfile, args);
    const entries = await listContext(folder, dockerfile);
    return { folder, entries, dockerfile: { path: dockerfile, text }, sha256: await hashContext(folder, entries) };
  } catch (error) {
    throw error instanceof AlidadeError ? error : refused(`${folder} cannot be read (${messageOf(error)})`);
  }
}

async function dockerfileText(folder: string, path: string): Promise<string> {
  const found = insidePath(path) === null ? null : await lstat(join(folder, path)).catch(() => null);
  const why = `environment.build.dockerfile is ${path}, and ${folder} has no such file`;
  if (!found?.isFile()) throw refused(`${why} (links are not followed): name a file in the context`, "dockerfile");
  if (found.size > maxDockerfile) throw refused(`${path} has more than ${maxDockerfile} bytes: shorten it`, "dockerfile");
  return readFile(join(folder, path), "utf8");
}

/** The names go to the engine, which reads them as a path. */
function assertImages(text: string, dockerfile: string, args: Build["args"]): void {
  const wrong = imagesOf(text, args).find(({ image }) => imageParts(image) === null);
  if (wrong === undefined) return;
  const shown = JSON.stringify(wrong.image.slice(0, mostShown));
  throw refused(`${dockerfile} takes an image ${shown}: write ${wantedImageName}`, "dockerfile");
}

async function listContext(folder: string, dockerfile: string): Promise<ContextEntry[]> {
  const own = await ignoreText(folder, [`${dockerfile}.dockerignore`, ".dockerignore"]);
  const ignore = new IgnoreFile(own ?? "");
  // The builder reads both, and keeps them out of the image itself.
  const always = new Set([dockerfile, ".dockerignore"]);
  const entries: ContextEntry[] = [];
  let met = 0;
  let bytes = 0;
  const walk = async (below: string): Promise<void> => {
    for (const name of (await readdir(join(folder, below))).sort()) {
      const path = below === "" ? name : `${below}/${name}`;
      met += 1;
      if (met > mostEntries) throw refused(`${folder} holds more than ${mostEntries} files and folders`);
      if (Buffer.byteLength(path) > longestPath || path.split("/").length > deepestFolder)
        throw refused(`${folder} holds ${path.slice(0, 200)}…, which is too deep or too long`);
      const isOut = ignore.leavesOut(path) && !always.has(path);
      const found = await lstat(join(folder, path));
      if (found.isDirectory()) {
        const { mode, mtime } = found;
        if (!isOut) entries.push({ path, type: "directory", mode: mode & 0o7777, size: 0, mtime });
        if (!isOut || ignore.hasExceptions || dockerfile.startsWith(`${path}/`)) await walk(path);
      } else if (!isOut) {
        entries.push(await toEntry(folder, path, found));
        bytes += found.size;
        if (bytes > maxBytes) throw refused(`${folder} holds more than ${maxBytes} bytes`);
      }
    }
  };
  await walk("");
  return entries.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

async function ignoreText(folder: string, paths: string[]): Promise<string | null> {
  for (const path of paths) {
    const found = await lstat(join(folder, path)).catch(() => null);
    if (found === null) continue;
    if (!found.isFile() || found.size > maxDockerfile) throw refused(`${path} is no file, or a very large one`);
    return readFile(join(folder, path), "utf8");
  }
  return null;
}

async function toEntry(folder: string, path: string, found: Awaited<ReturnType<typeof lstat>>): Promise<ContextEntry> {
  const { mtime, size } = found;
  const mode = Number(found.mode) & 0o7777;
  if (found.isFile()) return { path, type: "file", mode, size: Number(size), mtime };
  if (!found.isSymbolicLink()) throw refused(`${join(folder, path)} is neither a file, a folder nor a link`);
  const linkname = await readlink(join(folder, path));
  const leads = posix.normalize(posix.join(posix.dirname(path), linkname));
  if (posix.isAbsolute(linkname) || leads === ".." || leads.startsWith("../"))
    throw refused(`${join(folder, path)} is a link to ${linkname}, which leaves the context: put the file itself there`);
  return { path, type: "symlink", mode, size: 0, mtime, linkname };
}

async function hashContext(folder: string, entries: ContextEntry[]): Promise<string> {
  const hash = new ContextHash();
  for (const entry of entries) {
    hash.begins(entry);
    if (entry.type === "file") for await (const chunk of contentOf(folder, entry)) hash.has(chunk);
  }
  return hash.digest();
}

/** Times are left out: the builder's own cache does so too. */
class ContextHash {
  readonly #all = createHash("sha256");

  /** The size is part of it, so that no content can pass for the entry behind it. */
  begins({ path, type, mode, size, linkname }: ContextEntry): void {
    this.#all.update(`${JSON.stringify([path, type, mode, size, linkname ?? null])}\n`);
  }

  has(chunk: Buffer): void {
    this.#all.update(chunk);
  }

  digest(): string {
    return this.#all.digest("hex");
  }
}

/** A file that became a link meanwhile is not followed, and one that grew or shrank is refused. */
async function* contentOf(folder: string, { path, size }: ContextEntry): AsyncGenerator<Buffer> {
  await using file = await open(join(folder, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  let read = 0;
  for await (const chunk of file.createReadStream({ autoClose: false })) {
    read += (chunk as Buffer).length;
    if (read > size) break;
    yield chunk as Buffer;
  }
  if (read !== size) throw changed(join(folder, path));
}

/**
 * The context as a tarball for the engine, owned by root as Docker's own is. It fails where the files are no longer those
 * that were hashed, so that an image never has another content than its name says.
 */
export function packContext(context: BuildContext): Readable {
  return Readable.from(packTar(checkedEntries(context)), { objectMode: false });
}

async function* checkedEntries({ folder, entries, sha256 }: BuildContext): AsyncGenerator<TarEntry> {
  const hash = new ContextHash();
  for (const entry of entries) {
    const { path, type, mode, size, mtime, linkname } = entry;
    hash.begins(entry);
    const header = { mode, mtime, owner: { uid: 0, gid: 0 } };
    if (type === "directory") yield { ...header, name: `${path}/`, type };
    else if (type === "symlink") yield { ...header, name: path, type, linkname };
    else yield { ...header, name: path, type, size, content: hashing(contentOf(folder, entry), hash) };
  }
  if (hash.digest() !== sha256) throw changed(folder);
}

async function* hashing(content: AsyncIterable<Buffer>, hash: ContextHash): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    hash.has(chunk);
    yield chunk;
  }
}

function changed(path: string): AlidadeError {
  return refused(`${path} changed while it was read: build when it is at rest`);
}

function refused(why: string, field: keyof Build = "context"): AlidadeError {
  const message = `${why.startsWith("environment.") ? why : `environment.build.${field}: ${why}`}.`;
  return new AlidadeError("task_invalid", message, { param: `environment.build.${field}` });
}
