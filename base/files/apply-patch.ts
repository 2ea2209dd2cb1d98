/**
 * Applies a unified diff to a tree in memory, strictly: every context and removed line must stand where the hunk says.
 * Nothing is guessed, for a patch that fits somewhere else is a wrong task. Bytes are kept: text is handled as latin1.
 */
import { AlidadeError } from "../errors.ts";
import type { TreeFile } from "./file-tree.ts";
import { overlay } from "./file-tree.ts";
import { type FilePatch, type Hunk, parsePatch, splitLines } from "./parse-patch.ts";

/** The tree after the patch; an AlidadeError `task_invalid` says which file and line did not fit. */
export function applyPatch(files: TreeFile[], patch: string): TreeFile[] {
  const changes = parsePatch(Buffer.from(patch, "utf8").toString("latin1"));
  const base = new Map(files.map((file) => [file.path, file]));
  // In any order in the patch: two files may swap their paths, and a file may replace a folder.
  const gone = new Set(changes.filter(isLeft).map((change) => change.oldPath as string));
  const made = new Map<string, TreeFile | null>();
  for (const change of changes) {
    const path = (change.newPath ?? change.oldPath) as string;
    const isNew = change.oldPath === null || change.move !== null;
    const inTheWay = made.has(path) ? made.get(path) !== null : base.has(path) && !gone.has(path);
    if (isNew && inTheWay) throw misfit(path, "is there already, and the patch creates it");
    made.set(path, changeFile(sourceOf(change, base, made), change));
  }
  const created = [...made.values()].filter((file) => file !== null);
  return overlay(
    files.filter((file) => !gone.has(file.path)),
    created,
  );
}

/** Whether nothing stays under the old path. */
function isLeft(change: FilePatch): boolean {
  return change.oldPath !== null && (change.newPath === null || change.move === "rename");
}

/** What the change begins from: as git has it, a moved file as it was before the patch, any other as it is by now. */
function sourceOf(change: FilePatch, base: Map<string, TreeFile>, made: Map<string, TreeFile | null>): TreeFile | null {
  if (change.oldPath === null) return null;
  const source = change.move === null && made.has(change.oldPath) ? made.get(change.oldPath) : base.get(change.oldPath);
  if (!source) throw misfit(change.oldPath, "is not in the tree that it is applied to");
  return source;
}

/** null: deleted. */
function changeFile(source: TreeFile | null, { oldPath, newPath, mode, hunks }: FilePatch): TreeFile | null {
  const text = patchText((newPath ?? oldPath) as string, source?.content.toString("latin1") ?? "", hunks);
  if (newPath !== null) return { path: newPath, content: Buffer.from(text, "latin1"), mode: mode ?? source?.mode ?? 0o644 };
  if (text !== "") throw misfit(oldPath as string, "is deleted by the patch, and has more lines than the patch removes");
  return null;
}

function patchText(path: string, text: string, hunks: Hunk[]): string {
  const old = splitLines(text);
  const result: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    // A hunk without old lines stands after the line it names, any other one on it.
    const start = hunk.oldCount === 0 ? hunk.oldStart : hunk.oldStart - 1;
    if (start < at || start > old.length) throw misfit(path, `has no line ${hunk.oldStart}, where a hunk begins`);
    for (; at < start; at++) result.push(old[at] as string);
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
    for (let blank = 0; blank < hunk.stripped; blank++, at++) {
      if (old[at]?.trim() !== "") throw misfit(path, `has no blank line ${at + 1}, where the patch ends early`);
      result.push(old[at] as string);
    }
  }
  return [...result, ...old.slice(at)].join("");
}

function misfit(path: string, what: string): AlidadeError {
  return new AlidadeError("task_invalid", `patch: ${path} ${what}`, { param: "patch" });
}
