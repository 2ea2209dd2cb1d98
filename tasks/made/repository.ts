/**
 * A copy of a repository without a work tree, in a temporary folder. Git says that a copy is the safe way to read what a
 * stranger made: the original's hooks and configuration stay behind, and its objects are all that is read from here on.
 */
import { isUtf8 } from "node:buffer";
import { rm, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { insidePath, type TreeFile } from "../../base/files/file-tree.ts";
import { ownedFolder, temporary } from "../../base/host/temporary-folder.ts";
import { NoTask } from "./no-task.ts";
import { fetching, runGit } from "./run-git.ts";

export type Commit = { id: string; parents: string[] };
/** `path` is null where it is no path of a plain file: a link, a submodule, or a name that cannot be written as it is. */
export type CommitFile = { path: string | null; mode: number; id: string; size: number };
/** A file of one commit against another's; `removed`: it is there in the first one alone. */
export type ChangedFile = { path: string | null; removed: boolean; mode: number; id: string };

/** Where a task's own tree may have no more, no task can be made. */
const most = { files: 20_000, bytes: 256 * 1024 * 1024, patchBytes: 4 * 1024 * 1024, messageBytes: 1024 * 1024 };
/** A copy that is older belongs to a process that hangs. */
const leaseMs = 30 * 24 * 3600_000;

export class Repository implements AsyncDisposable {
  /** The original, without a password: an absolute folder or a URL. */
  readonly source: string;
  readonly name: string;
  readonly #folder: string;
  readonly #signal: AbortSignal;

  private constructor(source: string, folder: string, signal: AbortSignal) {
    this.source = source;
    this.name = nameOf(source);
    this.#folder = folder;
    this.#signal = signal;
  }

  /** `source`: a folder, a bundle or a URL. Only what its HEAD leads to is copied. */
  static async copy(source: string, owner: { run_id: string; owner: string }, signal: AbortSignal): Promise<Repository> {
    const folder = await ownedFolder(temporary.repository, { ...owner, lease: Date.now() + leaseMs });
    try {
      const place = (await isHere(source)) ? resolve(source) : source;
      const how = ["--bare", "--no-local", "--single-branch", "--no-tags", "--template=", "--quiet"];
      await runGit(["clone", ...how, "--", place, join(folder, "copy")], { signal, env: fetching(process.env) });
      return new Repository(withoutPassword(place), join(folder, "copy"), signal);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** A repository of two commits, with these trees; the second one has the message. */
  static async ofTrees(
    name: string,
    trees: readonly [TreeFile[], TreeFile[]],
    message: string,
    owner: { run_id: string; owner: string },
    signal: AbortSignal,
  ): Promise<Repository> {
    const folder = await ownedFolder(temporary.repository, { ...owner, lease: Date.now() + leaseMs });
    const repository = new Repository(name, join(folder, "copy"), signal);
    try {
      await runGit(["init", "--bare", "--quiet", "--template=", repository.#folder], { signal });
      const stdin = Buffer.concat(trees.flatMap((files, at) => commitStream(files, at === 0 ? "The first version" : message)));
      await repository.#git(["fast-import", "--quiet"], undefined, stdin);
      await repository.#git(["symbolic-ref", "HEAD", importedRef]);
      return repository;
    } catch (error) {
      await repository[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Newest first. `since`: a date, as git reads it. */
  async commits(since?: string): Promise<Commit[]> {
    const listed = await this.#git(
      ["rev-list", "--parents", ...(since === undefined ? [] : [`--since=${since}`]), "HEAD", "--"],
      1024 ** 3,
    );
    const lines = listed.toString("latin1").split("\n");
    return lines
      .filter((line) => line !== "")
      .map((line) => line.split(" "))
      .map(([id = "", ...parents]) => ({ id, parents }));
  }

  async changedFiles(from: string, to: string): Promise<ChangedFile[]> {
    const fields = split(await this.#git(["diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", from, to]));
    const changed: ChangedFile[] = [];
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const [oldMode = "", newMode = "", , id = ""] = String(fields[at]).slice(1).split(" ");
      const removed = newMode === "000000";
      const plain = [oldMode, newMode].every((mode) => mode === "000000" || isPlain(mode));
      changed.push({ path: plain ? pathOf(fields[at + 1]) : null, removed, mode: modeOf(newMode), id });
    }
    return changed;
  }

  async files(commit: string): Promise<CommitFile[]> {
    const lines = split(await this.#git(["ls-tree", "-r", "-z", "-l", "--full-tree", commit]));
    return lines.map((line) => {
      const tab = line.indexOf(0x09);
      const [mode = "", , id = "", size = ""] = line.subarray(0, tab).toString("latin1").split(/ +/);
      return { path: isPlain(mode) ? pathOf(line.subarray(tab + 1)) : null, mode: modeOf(mode), id, size: Number(size) || 0 };
    });
  }

  /** Contents by their ids. */
  async contents(files: readonly { id: string; size?: number }[]): Promise<Map<string, Buffer>> {
    const bytes = files.reduce((sum, { size = 0 }) => sum + size, 0);
    if (files.length > most.files || bytes > most.bytes)
      throw new AlidadeError(
        "output_too_large",
        `the tree has ${files.length} files of ${bytes} bytes; ${most.files} and ${most.bytes} are read`,
      );
    const ids = [...new Set(files.map(({ id }) => id))];
    // Each content stands between a line of its own and a line end.
    const printed = await this.#git(["cat-file", "--batch"], most.bytes + ids.length * 128, `${ids.join("\n")}\n`);
    const contents = new Map<string, Buffer>();
    for (let at = 0; at < printed.length; ) {
      const end = printed.indexOf(0x0a, at);
      const [id = "", type, size = ""] = printed.subarray(at, end).toString("latin1").split(" ");
      if (type !== "blob") throw new NoTask("not_files", `object ${id} is ${type}`);
      contents.set(id, printed.subarray(end + 1, end + 1 + Number(size)));
      at = end + Number(size) + 2;
    }
    return contents;
  }

  /** A unified diff of these paths. null: it is no UTF-8. */
  async patch(from: string, to: string, paths: string[]): Promise<string | null> {
    if (paths.length === 0) return "";
    const how = ["--patch", "--text", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"];
    const printed = await this.#git(["--literal-pathspecs", "diff-tree", "-r", ...how, from, to, "--", ...paths], most.patchBytes);
    return isUtf8(printed) ? printed.toString("utf8") : null;
  }

  /** `date`: in ISO 8601, of the commit. */
  async message(commit: string): Promise<{ date: string; text: string }> {
    const how = ["--no-walk", "--no-show-signature", "--no-notes", "--encoding=UTF-8", "--format=%cI%n%B"];
    const printed = (await this.#git(["log", ...how, commit, "--"], most.messageBytes)).toString("utf8");
    const end = printed.indexOf("\n");
    return { date: printed.slice(0, end), text: printed.slice(end + 1) };
  }

  #git(args: string[], most_bytes?: number, stdin?: string | Buffer): Promise<Buffer> {
    return runGit(["--git-dir", this.#folder, ...args], { signal: this.#signal, most_bytes, stdin });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(join(this.#folder, ".."), { recursive: true, force: true });
  }
}

const importedRef = "refs/heads/main";

/** A commit of whole trees, as git fast-import reads it. https://git-scm.com/docs/git-fast-import */
function commitStream(files: TreeFile[], message: string): Buffer[] {
  const text = Buffer.from(message);
  const head = `commit ${importedRef}\ncommitter task <task@localhost> 0 +0000\ndata ${text.length}\n`;
  const each = files.flatMap(({ path, content, mode }) => [
    Buffer.from(`M ${mode & 0o111 ? "100755" : "100644"} inline ${quotedPath(path)}\ndata ${content.length}\n`),
    ...[content, Buffer.from("\n")],
  ]);
  return [Buffer.from(head), text, Buffer.from("\ndeleteall\n"), ...each];
}

function quotedPath(path: string): string {
  return `"${path.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n")}"`;
}

function isHere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

function withoutPassword(source: string): string {
  if (!URL.canParse(source)) return source;
  const url = new URL(source);
  url.username = "";
  url.password = "";
  return url.href;
}

/** `widgets` for `https://example.org/acme/widgets.git`. */
function nameOf(source: string): string {
  const name = basename(source.replace(/[/\\]+$/, "").replace(/\/?\.git$/, ""))
    .replace(/^.*:/, "")
    .replace(/\.bundle$/, "");
  return (
    name
      .replace(/[^A-Za-z0-9._-]+/g, "-")
      .replace(/^[^A-Za-z0-9]+/, "")
      .slice(0, 60) || "repository"
  );
}

/** The parts of a text whose parts end with NUL. */
function split(text: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf(0, at);
    parts.push(text.subarray(at, end === -1 ? text.length : end));
    at = end === -1 ? text.length : end + 1;
  }
  return parts;
}

/** A link is 120000, a submodule 160000. */
function isPlain(mode: string): boolean {
  return /^100[0-7]{3}$/.test(mode);
}

function modeOf(mode: string): number {
  return Number.parseInt(mode, 8) & 0o100 ? 0o755 : 0o644;
}

/** File systems take names of 255 bytes and paths of 4096, of which our own folder needs a part. */
const longest = { name: 255, path: 2_000 };

/** null: it is no path of UTF-8 that can be written. */
function pathOf(bytes: Buffer | undefined): string | null {
  if (bytes === undefined || !isUtf8(bytes)) return null;
  const path = bytes.toString("utf8");
  return isWritable(path) ? path : null;
}

/** Whether a path stays in its tree, out of git's own folder, and file systems take it. */
export function isWritable(path: string): boolean {
  if (insidePath(path) === null || path.length > longest.path) return false;
  return !path.split("/").some((name) => name.toLowerCase() === ".git" || Buffer.byteLength(name) > longest.name);
}
