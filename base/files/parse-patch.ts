/**
 * Reads a unified diff, in git's own form or another's: which file becomes which, its mode, its hunks. Text is latin1
 * here, a character for each byte; paths are the UTF-8 that those bytes are.
 */
import { isUtf8 } from "node:buffer";
import { AlidadeError } from "../errors.ts";
import { insidePath } from "./file-tree.ts";

export type Hunk = {
  oldStart: number;
  oldCount: number;
  newStart: number;
  newCount: number;
  /** With their sign and their line end. */
  lines: string[];
  /** Blank lines of context that it counts and that were stripped from the patch's end. */
  stripped: number;
};

export type FilePatch = {
  /** null: the file is new. */
  oldPath: string | null;
  /** null: the file is deleted. */
  newPath: string | null;
  /** The file's way to a new path, where git names one: a renamed file leaves its old path, a copied one also stays there. */
  move: "rename" | "copy" | null;
  /** null: it stays as it was. */
  mode: number | null;
  hunks: Hunk[];
};

export function parsePatch(patch: string): FilePatch[] {
  // A patch without its last line end was stripped; a file without one is marked by its own line.
  const lines = splitLines(patch.endsWith("\n") ? patch : `${patch}\n`);
  const changes: FilePatch[] = [];
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] as string;
    if (line.startsWith("diff --git ") || areNames(lines, index)) {
      const [change, next] = parseHeader(lines, index);
      changes.push(change);
      index = next;
    } else if (line.startsWith("@@ ")) {
      const [hunk, next] = parseHunk(lines, index);
      const change = changes.at(-1);
      if (change === undefined) throw invalid(index, "begins a hunk of no file");
      change.hunks.push(hunk);
      index = next;
    } else if (/^GIT binary patch|^Binary files /.test(line)) {
      throw invalid(index, "is a binary change: only text changes are applied");
    } else {
      index++;
    }
  }
  if (changes.length === 0 && patch.trim() !== "")
    throw new AlidadeError("task_invalid", "patch: no file header (--- and +++) found: a unified diff is wanted", { param: "patch" });
  const empty = changes.find((change) => change.oldPath === change.newPath && change.mode === null && change.hunks.length === 0);
  if (empty) throw new AlidadeError("task_invalid", `patch: the header of ${empty.newPath} has no change below it`, { param: "patch" });
  return changes;
}

/** The paths that a patch speaks of, old and new, once each. */
export function patchedPaths(patch: string): string[] {
  const changes = parsePatch(Buffer.from(patch, "utf8").toString("latin1"));
  return [...new Set(changes.flatMap(({ oldPath, newPath }) => [oldPath, newPath]))].filter((path) => path !== null);
}

/** Lines with their line ends, so that a missing last one is seen. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function invalid(index: number, what: string): AlidadeError {
  return new AlidadeError("task_invalid", `patch: line ${index + 1} ${what}`, { param: "patch" });
}

function areNames(lines: string[], at: number): boolean {
  return lines[at]?.startsWith("--- ") === true && lines[at + 1]?.startsWith("+++ ") === true;
}

/** What stands before a change's hunks: git's own lines, and the two names, which git leaves out where there are no hunks. */
function parseHeader(lines: string[], at: number): [FilePatch, number] {
  const [header, index] = gitLines(lines, at);
  const move = header.has("rename to") ? "rename" : header.has("copy to") ? "copy" : null;
  const newMode = header.get("new file mode") ?? header.get("new mode");
  const change: Omit<FilePatch, "oldPath" | "newPath"> = { move, mode: newMode === undefined ? null : modeOf(newMode, at), hunks: [] };
  const named = areNames(lines, index);
  const next = named ? index + 2 : index;
  if (move !== null) {
    const path = (way: "from" | "to") => insideOf(nameOf(header.get(`${move} ${way}`) ?? ""), at);
    return [{ oldPath: path("from"), newPath: path("to"), ...change }, next];
  }
  if (named) {
    const [oldPath, newPath] = [pathAfterSign(lines, index), pathAfterSign(lines, index + 1)];
    if (oldPath === null && newPath === null) throw invalid(index, "names no file");
    return [{ oldPath, newPath, ...change }, next];
  }
  const path = pathInBoth(lines[at] as string, at);
  return [{ oldPath: header.has("new file mode") ? null : path, newPath: header.has("deleted file mode") ? null : path, ...change }, next];
}

/** The lines that git writes below `diff --git`, by how they begin, and the index of what follows them. */
function gitLines(lines: string[], at: number): [Map<string, string>, number] {
  const header = new Map<string, string>();
  if (!lines[at]?.startsWith("diff --git ")) return [header, at];
  let index = at + 1;
  for (; index < lines.length && !areNames(lines, index); index++) {
    const line = lines[index] as string;
    if (/^(?:diff --git |@@ |GIT binary patch|Binary files )/.test(line)) break;
    const found = /^((?:new|new file|deleted file) mode|(?:rename|copy) (?:from|to)) (.*)$/.exec(withoutEnd(line));
    if (found) header.set(found[1] as string, found[2] as string);
  }
  return [header, index];
}

function modeOf(mode: string, line: number): number {
  if (!/^100[0-7]{3}$/.test(mode)) throw invalid(line, `makes a link or a submodule (mode ${mode}): only regular files are made`);
  return Number.parseInt(mode, 8) & 0o100 ? 0o755 : 0o644;
}

/** The path behind `---` or `+++`; null for none. */
function pathAfterSign(lines: string[], line: number): string | null {
  const name = nameOf(withoutEnd(lines[line] as string).slice("--- ".length));
  return name === "/dev/null" ? null : insideOf(withoutPrefix(name), line);
}

/** The path in `diff --git a/path b/path`. A change without hunks and renames names its file only there. */
function pathInBoth(header: string, line: number): string {
  const text = withoutEnd(header).slice("diff --git ".length);
  const half = text.length >> 1;
  const [, one, other] = /^("(?:[^"\\]|\\.)*") (".*")$/.exec(text) ?? [text, text.slice(0, half), text.slice(half + 1)];
  const [path, same] = [one, other].map((name) => withoutPrefix(nameOf(name as string)));
  if (path === undefined || path !== same) throw invalid(line, "names no file, or two, and no hunk follows");
  return insideOf(path, line);
}

function withoutEnd(line: string): string {
  return line.replace(/\r?\n$/, "");
}

function withoutPrefix(name: string): string {
  return name.replace(/^[ab]\//, "");
}

const escaped = new Map([
  ["a", "\x07"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
]);

/** A name as it is written: in quotes, with escapes and octal bytes, if it holds what a line cannot; else it ends at a tab. */
function nameOf(text: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  if (quoted === undefined) return text.replace(/\t.*$/, "");
  return quoted.replace(/\\([0-3][0-7]{2}|.)/g, (_, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (escaped.get(code) ?? code),
  );
}

function insideOf(name: string, line: number): string {
  const bytes = Buffer.from(name, "latin1");
  const path = bytes.toString("utf8");
  if (!isUtf8(bytes)) throw invalid(line, `names a file with a name that is not UTF-8: ${path}`);
  if (insidePath(path) === null) throw invalid(line, `names a file outside the workdir: ${path}`);
  return path;
}

function parseHunk(lines: string[], at: number): [Hunk, number] {
  const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(lines[at] as string);
  if (!header) throw invalid(at, "is no hunk header");
  const [oldCount, newCount] = [Number(header[2] ?? 1), Number(header[4] ?? 1)];
  const hunk: Hunk = { oldStart: Number(header[1]), oldCount, newStart: Number(header[3]), newCount, lines: [], stripped: 0 };
  let [old, fresh, index] = [0, 0, at + 1];
  for (; index < lines.length; index++) {
    const line = lines[index] as string;
    if (line.startsWith("\\")) {
      // "No newline at end of file": the line before it ends without one.
      const last = hunk.lines.pop();
      if (last !== undefined) hunk.lines.push(last.replace(/\n$/, ""));
      continue;
    }
    if (old >= oldCount && fresh >= newCount) break;
    // Mailers strip the blank of an empty context line.
    const kept = line === "\n" ? " \n" : line;
    if (!/^[ +-]/.test(kept)) break;
    if (kept[0] !== "+") old++;
    if (kept[0] !== "-") fresh++;
    hunk.lines.push(kept);
  }
  if (index === lines.length && oldCount - old === newCount - fresh) hunk.stripped = Math.max(0, oldCount - old);
  if (old + hunk.stripped !== oldCount || fresh + hunk.stripped !== newCount)
    throw invalid(at, "begins a hunk that ends early or counts its lines wrongly");
  return [hunk, index];
}
