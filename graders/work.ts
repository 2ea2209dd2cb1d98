/**
 * What an agent left behind, against what it was given. Both are file trees that were read from outside: nothing of
 * the agent's runs here, and its `.git`, attributes and ignore lists have no say.
 */
import { createHash } from "node:crypto";
import { AlidadeError } from "../errors.ts";
import type { TreeFile } from "../files/file-tree.ts";
import { hashTree, isExecutable, matchesAny } from "../files/file-tree.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Task } from "../schema/task.ts";
import { diffLines } from "./line-diff.ts";

/** Never part of the work: an agent's own history, and caches that could carry more than the sources beside them. */
const ignored = ["**/.git/**", "**/.git", "**/__pycache__/**", "**/*.pyc", "**/.pytest_cache/**"];

/** Work over this was not written by hand; taking it out must not fill our memory. */
const workBounds = { max_files: 20_000, max_bytes: 256 * 1024 * 1024 };

/** Characters kept of the patch that people read; its hash is over what was compared. */
const patchLength = 200_000;
/** Larger files, and everything after this much patch, are compared by hash: comparing lines costs time. */
const largestCompared = 1_000_000;
const mostCompared = 5 * patchLength;

export type WorkDiff = {
  no_change: boolean;
  added: string[];
  modified: string[];
  deleted: string[];
  /** Unified diff, cut at `patchLength`. */
  patch: string;
  patch_truncated: boolean;
  patch_sha256: string;
  tree_sha256: string;
};

/**
 * The workdir, read from outside. Called once when the task was delivered (that is the base) and once after `freeze`
 * (that is the work), so that both have gone the same way. Throws what the agent did to its workdir as the policy's.
 */
export async function takeWork(sandbox: Sandbox, task: Task): Promise<TreeFile[]> {
  const { workdir } = task.environment;
  const files = await sandbox.readFiles(workdir, { ...workBounds, exclude: ignored }).catch((error: unknown) => {
    if (!(error instanceof AlidadeError) || error.code !== "not_found") throw error;
    // It was there when the sandbox was made.
    throw new AlidadeError("output_unreadable", `The workdir ${workdir} is gone, or is no folder any more.`, { cause: error });
  });
  return files.filter((file) => !matchesAny(file.path, ignored));
}

/** Arguments of one `rm`: of the longest paths that there are this many fit into a command. */
const mostRemoved = 400;

/**
 * Puts `files` into a workdir that holds `base`, or what the image has of it: what is no longer among them is removed,
 * for a deletion is work too.
 */
export async function placeWork(sandbox: Sandbox, base: TreeFile[], files: TreeFile[], signal: AbortSignal): Promise<void> {
  const kept = new Set(files.map((file) => file.path));
  const gone = base.map((file) => file.path).filter((path) => !kept.has(path));
  for (let at = 0; at < gone.length; at += mostRemoved) {
    const { exit_code, stderr } = await sandbox.exec(["rm", "-f", "--", ...gone.slice(at, at + mostRemoved)], {
      signal,
      timeout_ms: 30_000,
    });
    if (exit_code !== 0) throw new AlidadeError("sandbox_error", `could not remove what the work deleted: ${stderr.slice(-500)}`);
  }
  await sandbox.writeFiles(files);
}

export function diffWork(base: TreeFile[], work: TreeFile[]): WorkDiff {
  const before = new Map(base.map((file) => [file.path, file]));
  const after = new Map(work.map((file) => [file.path, file]));
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  const changed = paths.filter((path) => !sameFile(before.get(path), after.get(path)));
  let patch = "";
  for (const path of changed) patch += filePatch(path, before.get(path), after.get(path), patch.length < mostCompared);
  return {
    no_change: changed.length === 0,
    added: changed.filter((path) => !before.has(path)),
    modified: changed.filter((path) => before.has(path) && after.has(path)),
    deleted: changed.filter((path) => !after.has(path)),
    patch: patch.slice(0, patchLength),
    patch_truncated: patch.length > patchLength,
    patch_sha256: createHash("sha256").update(patch).digest("hex"),
    tree_sha256: hashTree(work),
  };
}

function sameFile(a: TreeFile | undefined, b: TreeFile | undefined): boolean {
  return a !== undefined && b !== undefined && isExecutable(a) === isExecutable(b) && a.content.equals(b.content);
}

/** In git's own form, so that people and SWE tools can apply it. */
function filePatch(path: string, before: TreeFile | undefined, after: TreeFile | undefined, lines: boolean): string {
  const head = [`diff --git a/${path} b/${path}`, ...modeLines(before, after)];
  if (before && after && before.content.equals(after.content)) return `${head.join("\n")}\n`;
  const names = [before ? `--- a/${path}` : "--- /dev/null", after ? `+++ b/${path}` : "+++ /dev/null"];
  if (!lines || isOpaque(before) || isOpaque(after)) {
    return `${[...head, `Binary files differ (sha256 ${contentHash(before)} -> ${contentHash(after)})`].join("\n")}\n`;
  }
  const hunks = diffLines(before?.content.toString("utf8") ?? "", after?.content.toString("utf8") ?? "");
  return `${[...head, ...(hunks === "" ? [] : names)].join("\n")}\n${hunks}`;
}

function modeLines(before: TreeFile | undefined, after: TreeFile | undefined): string[] {
  const mode = (file: TreeFile) => (isExecutable(file) ? "100755" : "100644");
  if (!before) return [`new file mode ${mode(after as TreeFile)}`];
  if (!after) return [`deleted file mode ${mode(before)}`];
  return mode(before) === mode(after) ? [] : [`old mode ${mode(before)}`, `new mode ${mode(after)}`];
}

/** Too large to compare, or binary as git decides: a zero byte among the first 8000. */
function isOpaque(file: TreeFile | undefined): boolean {
  return file !== undefined && (file.content.length > largestCompared || file.content.subarray(0, 8_000).includes(0));
}

function contentHash(file: TreeFile | undefined): string {
  return file ? createHash("sha256").update(file.content).digest("hex").slice(0, 16) : "none";
}
