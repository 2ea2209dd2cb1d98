/** A tree of files in memory: what is put into a sandbox and what is taken out of one. */
import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { AlidadeError } from "../errors.ts";

/** A file of a tree. Its path is relative and stays inside the folder it is relative to. */
export type TreeFile = { path: string; content: Buffer; mode: number };

/** More than any task of the formats that we read holds; a folder over it was named by mistake. */
const folderBounds = { max_files: 20_000, max_bytes: 512 * 1024 * 1024 };

type FolderOptions = Partial<typeof folderBounds> & {
  /**
   * `refused`, the default: a task file is untrusted, and a link in its folder could name any file of the host. `kept`: as a
   * file that says where it leads.
   */
  links?: "refused" | "kept";
};

type FolderEntry = { path: string; size: number; mode: number; isLink: boolean };

/** The regular files below a folder of the host, sorted by path. Throws `task_invalid` for what is none. */
export async function readFolder(folder: string, options: FolderOptions = {}): Promise<TreeFile[]> {
  const files: TreeFile[] = [];
  for (const { path, mode, isLink } of await listFolder(folder, options)) {
    const content = isLink ? Buffer.from(`\0link to ${await readlink(join(folder, path))}`) : await readFile(join(folder, path));
    files.push({ path, content, mode: isLink ? 0o644 : plainMode(mode) });
  }
  return files;
}

/** What `readFolder` would read, without reading it. */
export async function listFolder(folder: string, { links = "refused", ...own }: FolderOptions = {}): Promise<FolderEntry[]> {
  const { max_files, max_bytes } = { ...folderBounds, ...own };
  const entries: FolderEntry[] = [];
  let bytes = 0;
  const walk = async (below: string): Promise<void> => {
    for (const name of await namesIn(join(folder, below))) {
      const path = below ? `${below}/${name}` : name;
      const found = await lstat(join(folder, path));
      const isLink = found.isSymbolicLink() && links === "kept";
      if (found.isDirectory()) await walk(path);
      else if (!found.isFile() && !isLink) throw noFile(join(folder, path));
      else {
        bytes += found.size;
        if (entries.length >= max_files) throw tooLarge(folder, `${max_files} files`);
        if (bytes > max_bytes) throw tooLarge(folder, `${max_bytes} bytes`);
        entries.push({ path, size: found.size, mode: found.mode, isLink });
      }
    }
  };
  await walk("");
  return entries.sort(byPath);
}

function noFile(path: string): AlidadeError {
  return new AlidadeError("task_invalid", `${path} is neither a file nor a folder (links are not followed): put the file itself there`);
}

/** A plain error: what asked for the folder says whose failure that is. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new Error(`the folder ${folder} is not on this machine: a task's folders are read at the same path on each node of a service`, {
      cause: error,
    });
  }
}

function tooLarge(folder: string, bound: string): AlidadeError {
  return new AlidadeError("task_invalid", `${folder} holds more than ${bound}: name a smaller folder`);
}

/** The path itself when it is relative, normal and stays inside; null otherwise. */
export function insidePath(path: string): string | null {
  if (path === "" || path.includes("\0") || path.includes("\\") || posix.isAbsolute(path)) return null;
  const parts = path.split("/");
  return parts.some((part) => part === "" || part === "." || part === "..") ? null : path;
}

/**
 * `over` on `base`: same paths are replaced, and so is a file that stands where `over` has a folder, and a folder where it
 * has a file. Sorted by path.
 */
export function overlay(base: TreeFile[], over: TreeFile[]): TreeFile[] {
  const files = new Map(over.map((file) => [file.path, file]));
  const folders = new Set<string>();
  // Each folder is looked at once: thousands of files may lie in one that is deep.
  for (const { path } of over) for (let at = parentOf(path); at !== "" && !folders.has(at); at = parentOf(at)) folders.add(at);
  const known = new Map<string, boolean>([["", false]]);
  const isInFile = (folder: string): boolean => {
    const found = known.get(folder) ?? (files.has(folder) || isInFile(parentOf(folder)));
    known.set(folder, found);
    return found;
  };
  const inTheWay = (path: string) => files.has(path) || folders.has(path) || isInFile(parentOf(path));
  return [...base.filter(({ path }) => !inTheWay(path)), ...files.values()].sort(byPath);
}

/** "" for a path in no folder. */
function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/** Is it this folder, or in it? */
export function isBelow(path: string, folder: string): boolean {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}

/** `c`, `c/b` for `c/b/a`. */
export function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) folders.push(path.slice(0, end));
  return folders;
}

/** Globs know `*`, `?` and `**`. Dot files match too: Node's own matchesGlob skips them, and a protected folder has no blind spot. */
export function matchesAny(path: string, globs: readonly string[]): boolean {
  const pattern = patterns.get(globs) ?? new RegExp(`^(?:${globs.map(globPattern).join("|")})$`, "s");
  patterns.set(globs, pattern);
  return globs.length > 0 && pattern.test(path);
}

/** A list of a thousand globs is held against each of a hundred thousand paths: it is compiled once. Lists do not change. */
const patterns = new WeakMap<readonly string[], RegExp>();

/** Whether one of the globs names the path or a folder above it. One look at the path for each glob, however deep it is. */
export function isInside(path: string, globs: string[]): boolean {
  return globs.some((glob) => new RegExp(`^${globPattern(glob)}(?:/|$)`, "s").test(path));
}

function globPattern(glob: string): string {
  return glob.replace(/\*\*\/|\*\*|\*|\?|[\\^$.+()|[\]{}]/g, (found) => {
    if (found === "**/") return "(?:.*/)?";
    if (found === "**") return ".*";
    if (found === "*") return "[^/]*";
    return found === "?" ? "[^/]" : `\\${found}`;
  });
}

/** Hex sha-256 over paths, the executable bit and contents; what else a mode says differs between sandboxes. */
export function hashTree(files: TreeFile[]): string {
  const hash = createHash("sha256");
  for (const file of [...files].sort(byPath)) {
    const content = createHash("sha256").update(file.content).digest("hex");
    hash.update(`${JSON.stringify(file.path)} ${isExecutable(file) ? "x" : "-"} ${content}\n`);
  }
  return hash.digest("hex");
}

export function isExecutable(file: TreeFile): boolean {
  return (file.mode & 0o111) !== 0;
}

/** The mode that a delivered file has in every sandbox: the other bits of a host's file differ between machines. */
export function plainMode(mode: number): number {
  return (mode & 0o111) === 0 ? 0o644 : 0o755;
}

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
