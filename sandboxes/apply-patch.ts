/**
 * Applies a unified diff to a tree in memory, strictly: every context and removed line must stand where the hunk says.
 * Nothing is guessed, for a patch that fits somewhere else is a wrong task. Bytes are kept: text is handled as latin1.
 */
import { AlidadeError } from "../errors.ts";
import { insidePath, overlay } from "./file-tree.ts";
import type { SandboxFile } from "./sandbox.ts";

type Hunk = { oldStart: number; oldCount: number; newCount: number; lines: string[] };
type FilePatch = { oldPath: string | null; newPath: string | null; mode: number | null; hunks: Hunk[] };

/** The tree after the patch; an AlidadeError `task_invalid` says which file and line did not fit. */
export function applyPatch(files: SandboxFile[], patch: string): SandboxFile[] {
  let tree = files;
  for (const change of parsePatch(Buffer.from(patch, "utf8").toString("latin1"))) tree = applyToFile(tree, change);
  return tree;
}

function applyToFile(files: SandboxFile[], change: FilePatch): SandboxFile[] {
  const path = (change.newPath ?? change.oldPath) as string;
  const source = change.oldPath === null ? null : files.find((file) => file.path === change.oldPath);
  if (source === undefined) throw misfit(change.oldPath as string, "is not in the tree that it is applied to");
  if (source === null && files.some((file) => file.path === path)) throw misfit(path, "is there already, and the patch creates it");
  const text = patchText(path, source?.content.toString("latin1") ?? "", change.hunks);
  if (change.newPath === null) {
    if (text !== "") throw misfit(path, "is deleted by the patch, and has more lines than the patch removes");
    return files.filter((file) => file.path !== path);
  }
  const mode = change.mode ?? source?.mode ?? 0o644;
  return overlay(files, [{ path, content: Buffer.from(text, "latin1"), mode }]);
}

function patchText(path: string, text: string, hunks: Hunk[]): string {
  const old = splitLines(text);
  const result: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    // A hunk without old lines stands after the line it names, any other one on it.
    const start = hunk.oldCount === 0 ? hunk.oldStart : hunk.oldStart - 1;
    if (start < at || start > old.length) throw misfit(path, `has no line ${hunk.oldStart}, where a hunk begins`);
    result.push(...old.slice(at, start));
    at = start;
    for (const line of hunk.lines) {
      const content = line.slice(1);
      if (line[0] === "+") {
        result.push(content);
      } else {
        if (old[at] !== content) throw misfit(path, `differs at line ${at + 1} from what the patch expects there`);
        if (line[0] === " ") result.push(content);
        at++;
      }
    }
  }
  return [...result, ...old.slice(at)].join("");
}

/** Lines with their line ends, so that a missing last one is seen. */
export function splitLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function misfit(path: string, what: string): AlidadeError {
  return new AlidadeError("task_invalid", `patch: ${path} ${what}`, { param: "patch" });
}

function parsePatch(patch: string): FilePatch[] {
  const lines = splitLines(patch);
  const changes: FilePatch[] = [];
  let current: FilePatch | null = null;
  for (let index = 0; index < lines.length; index++) {
    const line = (lines[index] as string).replace(/\r?\n$/, "");
    if (line.startsWith("diff --git ")) {
      current = null;
    } else if (/^(rename|copy) (from|to) |^GIT binary patch|^Binary files /.test(line)) {
      throw new AlidadeError(
        "task_invalid",
        `patch: line ${index + 1} is a rename, a copy or a binary change: only text changes are applied`,
        { param: "patch" },
      );
    } else if (line.startsWith("--- ") && lines[index + 1]?.startsWith("+++ ")) {
      current = {
        oldPath: pathOf(line.slice(4), index),
        newPath: pathOf((lines[index + 1] as string).replace(/\r?\n$/, "").slice(4), index + 1),
        mode: modeAbove(lines, index),
        hunks: [],
      };
      if (current.oldPath === null && current.newPath === null)
        throw new AlidadeError("task_invalid", `patch: line ${index + 1} names no file`, { param: "patch" });
      changes.push(current);
      index++;
    } else if (line.startsWith("@@ ")) {
      if (current === null) throw new AlidadeError("task_invalid", `patch: line ${index + 1} begins a hunk of no file`, { param: "patch" });
      const [hunk, next] = parseHunk(lines, index);
      current.hunks.push(hunk);
      index = next - 1;
    }
  }
  if (changes.length === 0 && patch.trim() !== "")
    throw new AlidadeError("task_invalid", "patch: no file header (--- and +++) found: a unified diff is wanted", { param: "patch" });
  return changes;
}

/** The mode that git writes above a file's header, where it changes one. */
function modeAbove(lines: string[], header: number): number | null {
  for (let index = header - 1; index >= 0 && !lines[index]?.startsWith("diff --git "); index--) {
    const found = /^new (?:file )?mode 100(644|755)/.exec(lines[index] as string);
    if (found) return Number.parseInt(found[1] as string, 8);
    if (/^[ +@-]/.test(lines[index] as string)) break;
  }
  return null;
}

function pathOf(text: string, line: number): string | null {
  const name = text.replace(/\t.*$/, "");
  if (name === "/dev/null") return null;
  const path = insidePath(name.replace(/^[ab]\//, ""));
  if (path === null)
    throw new AlidadeError("task_invalid", `patch: line ${line + 1} names a file outside the workdir: ${name}`, { param: "patch" });
  return path;
}

function parseHunk(lines: string[], at: number): [Hunk, number] {
  const header = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(lines[at] as string);
  if (!header) throw new AlidadeError("task_invalid", `patch: line ${at + 1} is no hunk header`, { param: "patch" });
  const hunk: Hunk = { oldStart: Number(header[1]), oldCount: Number(header[2] ?? 1), newCount: Number(header[3] ?? 1), lines: [] };
  let [old, fresh, index] = [0, 0, at + 1];
  for (; index < lines.length; index++) {
    const line = lines[index] as string;
    if (line.startsWith("\\")) {
      // "No newline at end of file": the line before it ends without one.
      const last = hunk.lines.pop();
      if (last !== undefined) hunk.lines.push(last.replace(/\n$/, ""));
      continue;
    }
    if (old >= hunk.oldCount && fresh >= hunk.newCount) break;
    // Mailers strip the blank of an empty context line.
    const kept = line === "\n" ? " \n" : line;
    if (!/^[ +-]/.test(kept)) break;
    if (kept[0] !== "+") old++;
    if (kept[0] !== "-") fresh++;
    hunk.lines.push(kept);
  }
  if (old !== hunk.oldCount || fresh !== hunk.newCount) {
    throw new AlidadeError("task_invalid", `patch: the hunk at line ${at + 1} ends early or counts its lines wrongly`, { param: "patch" });
  }
  return [hunk, index];
}
