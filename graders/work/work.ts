/**
 * What an agent left behind, against what it was given: a layer that was read from outside. Nothing of the agent's runs
 * here, and its `.git`, attributes and ignore lists have no say.
 */

import { AlidadeError } from "../../base/errors.ts";
import { foldersAbove, isBelow, isInside, matchesAny, type TreeFile } from "../../base/files/file-tree.ts";
import { keepLayer, type LayerBase, type LayerEntry, readLayer, type WorkLayer } from "../../base/files/layer.ts";
import { workBounds } from "../../base/files/layer-bounds.ts";
import { isLent } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import { argumentBatches } from "../../sandboxes/index.ts";

/**
 * Kept with the work and never graded with: Python runs these in the place of the sources beside them, the hidden tests'
 * sources too.
 */
const caches = ["**/__pycache__", "**/*.pyc", "**/.pytest_cache"];
/** The graders' own folders in HOME, which a task may let cross: nothing of the work may lie there before them. */
const notGraded = [...caches, "home/agent/.alidade-*"];
/** No change of the work itself: an agent that only asks git writes there. */
const beside = [...caches, "**/.git"];

/** The folders that the work is in, by `environment.work`. */
function workPaths({ work, workdir }: Task["environment"]): string[] {
  if (work === "workdir") return [workdir];
  return work === "layer" ? ["/"] : work;
}

/**
 * Takes the work out of a frozen sandbox into `<folder>/<hash>.tar.gz`. `delivered`: the files that were put into the
 * workdir; `setUp`: what the task's set-up then left, in whatever place. Throws what the agent did to its workdir as the
 * policy's.
 */
export async function takeWork(
  sandbox: Sandbox,
  { environment, limits }: Task,
  delivered: TreeFile[],
  folder: string,
  signal?: AbortSignal,
  setUp: WorkLayer | null = null,
): Promise<WorkLayer> {
  const known = new Map(setUp?.changes.map((change) => [change.path, change]));
  const { work_files: files = workBounds.files, work_mb: megabytes = workBounds.megabytes } = limits;
  const changes = sandbox.changes(workPaths(environment), { known, most: { files, megabytes }, ...(signal && { signal }) });
  const entries = whileWorkdirIsThere(changes, environment.workdir);
  const base = { delivered: deliveredPaths(environment, delivered), made: [environment.workdir], known };
  return whereThereIsSpace(folder, keepConcealed(environment, entries, folder, base));
}

/** The delivered files by their absolute paths. */
export function deliveredPaths({ workdir }: Task["environment"], delivered: TreeFile[]): Map<string, TreeFile> {
  return new Map(delivered.map((file) => [`${workdir}/${file.path}`, file]));
}

export async function whereThereIsSpace<T>(folder: string, kept: Promise<T>): Promise<T> {
  try {
    return await kept;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    throw new AlidadeError("store_full", `no space left below ${folder} for the work: free some space`, { cause: error });
  }
}

/** The history that the agent saw was made for it, and is as large as the repository: `.git` stays as it was delivered. */
function keepConcealed({ conceal, workdir }: Task["environment"], entries: AsyncIterable<LayerEntry>, folder: string, base: LayerBase) {
  if (conceal === null) return keepLayer(entries, folder, base);
  const history = `${workdir}/.git`;
  const delivered = new Map([...(base.delivered ?? [])].filter(([path]) => !isBelow(path, history)));
  return keepLayer(without(entries, history), folder, { ...base, delivered });
}

async function* without(entries: AsyncIterable<LayerEntry>, folder: string): AsyncGenerator<LayerEntry> {
  for await (const entry of entries) if (!isBelow(entry.path, folder)) yield entry;
}

async function* whileWorkdirIsThere(entries: AsyncIterable<LayerEntry>, workdir: string): AsyncGenerator<LayerEntry> {
  const isGone = () => new AlidadeError("output_unreadable", `The workdir ${workdir} is gone, or is no folder any more.`);
  try {
    for await (const entry of entries) {
      if (entry.type !== "folder" && isBelow(workdir, entry.path)) throw isGone();
      yield entry;
    }
  } catch (error) {
    throw error instanceof AlidadeError && error.code === "not_found" ? isGone() : error;
  }
}

/** What of a work is not put into the sandbox that grades it. Paths are relative to the workdir. */
export type Except = {
  /** Globs of what stays as it was delivered. */
  protected?: string[];
  /** Files that are put there afterwards and win. */
  over?: TreeFile[];
  /** What else stays as it was delivered, by its absolute path. */
  heldBack?: (entry: Pick<LayerEntry, "path" | "type" | "kind">) => boolean;
};

/** Puts a work into a fresh sandbox of its task: what it deleted is removed, then the rest is put in place. In the agent's own it stands. */
export async function placeWork(sandbox: Sandbox, task: Task, work: WorkLayer, except: Except, signal: AbortSignal): Promise<void> {
  if (isLent(sandbox.facts.isolation)) return;
  const { workdir } = task.environment;
  const below = await replacedFiles(sandbox, workdir, work, except, signal);
  const isProtected = (name: string) => matchesAny(name, except.protected ?? []);
  const isPlaced = placedBy(workdir, except, new Set(below.filter(isProtected).flatMap(foldersAbove)));
  const [placed, kept] = partition(work.changes, isPlaced);
  const gone = placed.filter(({ type }) => type === "deleted").map(({ path }) => path);
  // A deleted folder that holds protected files loses its other files only.
  const halfGone = new Set(kept.filter(({ type }) => type === "deleted").map(({ path }) => path));
  const others = below.filter((name) => !isProtected(name) && foldersAbove(name).some((parent) => halfGone.has(`${workdir}/${parent}`)));
  await removePaths(sandbox, [...gone, ...others.map((name) => `${workdir}/${name}`)], signal);
  // An archive costs the engine more than a command does, also an empty one.
  if (placed.some(({ type }) => type !== "deleted")) await sandbox.putEntries(only(work, isPlaced));
}

function partition<T>(all: T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

/** `find` prints the files below each folder; what is a link or a file has none. */
const listFiles = 'for path; do [ -L "$path" ] || [ ! -d "$path" ] || find "$path" ! -type d -print0 || exit; done';
/** Two hundred thousand paths of the usual length. */
const mostListedBytes = 64 * 1024 * 1024;

/**
 * The files of a fresh sandbox below folders that are no folders in the work: only the work's own list does not say
 * that they go with it. Relative to the workdir; [] where the task protects nothing.
 */
async function replacedFiles(sandbox: Sandbox, workdir: string, { changes }: WorkLayer, except: Except, signal: AbortSignal) {
  if (!except.protected?.length) return [];
  const paths = changes
    .filter(({ path, type }) => type !== "folder" && path.startsWith(`${workdir}/`))
    .map(({ path }) => sandbox.path(path));
  const start = sandbox.path(workdir).length + 1;
  const found: string[] = [];
  for (const batch of argumentBatches(paths)) {
    const argv = ["sh", "-c", listFiles, "sh", ...batch];
    const listed = await sandbox.exec(argv, { signal, timeout_ms: 60_000, max_output_bytes: mostListedBytes });
    if (listed.exit_code !== 0 || listed.dropped_bytes > 0)
      throw new AlidadeError("sandbox_error", `could not list what the work replaced: ${listed.stderr.slice(-500)}`);
    for (const path of listed.stdout.split("\0")) if (path !== "") found.push(path.slice(start));
  }
  return found;
}

/** A folder that the agent may have changed to remove what is in it gets its user's rights first. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
const removeAll = 'rm -rf -- "$@" 2>/dev/null && exit; for path; do chmod -f u+rwx -- "${path%/*}"; done; rm -rf -- "$@"';

export async function removePaths(sandbox: Sandbox, paths: string[], signal: AbortSignal): Promise<void> {
  for (const batch of argumentBatches(paths.map((path) => sandbox.path(path)))) await remove(sandbox, batch, signal);
}

async function remove(sandbox: Sandbox, paths: string[], signal: AbortSignal): Promise<void> {
  const { exit_code, stderr } = await sandbox.exec(["sh", "-c", removeAll, "sh", ...paths], {
    programs: "outside",
    signal,
    timeout_ms: 60_000,
  });
  if (exit_code !== 0) throw new AlidadeError("sandbox_error", `could not remove what the work deleted: ${stderr.slice(-500)}`);
}

/**
 * The entries of a work that are placed. Where a file is not, but a second name of it is, that name gets the content.
 */
async function* only(work: WorkLayer, isPlaced: (entry: Placeable) => boolean): AsyncGenerator<LayerEntry> {
  const heirs = new Map<string, string>();
  if (work.changes.some((change) => change.type === "file" && !isPlaced(change)))
    for await (const { path, type, kind, target } of readLayer(work))
      if (type === "hardlink" && target !== null && !heirs.has(target) && isPlaced({ path, type, kind })) heirs.set(target, path);
  for await (const entry of readLayer(work)) {
    const heir = heirs.get(entry.path);
    if (isPlaced(entry)) {
      const first =
        entry.type === "hardlink" && !isPlaced({ ...entry, path: entry.target ?? "", type: "file" })
          ? heirs.get(entry.target ?? "")
          : undefined;
      if (first !== entry.path) yield first === undefined ? entry : { ...entry, target: first };
    } else if (entry.type === "file" && heir !== undefined) yield { ...entry, path: heir };
  }
}

type Placeable = Pick<LayerEntry, "path" | "type" | "kind">;

/** `held`: folders of the fresh sandbox that hold protected files. */
function placedBy(workdir: string, { protected: globs = [], over = [], heldBack }: Except, held: Set<string>) {
  const files = new Set(over.map(({ path }) => path));
  const folders = new Set([...[...files].flatMap(foldersAbove), ...held]);
  // Folders in which a glob finds files: a link in the place of one would bring files of its own.
  const above = globs.flatMap((glob) => foldersAbove(glob.replace(/\*\*.*/s, "")));
  return ({ path, type, kind }: Placeable): boolean => {
    if (isInside(path.slice(1), notGraded) || heldBack?.({ path, type, kind })) return false;
    if (!path.startsWith(`${workdir}/`)) return true;
    const name = path.slice(workdir.length + 1);
    if (matchesAny(name, globs) || files.has(name) || foldersAbove(name).some((parent) => files.has(parent))) return false;
    // What is no folder any more would take what is below it along.
    return type === "folder" || !(folders.has(name) || matchesAny(name, above));
  };
}

/** The paths that the work added, relative to the workdir. */
export function addedPaths({ changes }: WorkLayer, workdir: string): string[] {
  return changes
    .filter(({ kind, path }) => kind === "added" && path.startsWith(`${workdir}/`))
    .map(({ path }) => path.slice(workdir.length + 1));
}

/** The paths that the work added or changed, relative to the workdir. */
export function changedPaths({ changes }: WorkLayer, workdir: string): string[] {
  return changes
    .filter(({ kind, path, type }) => kind !== "deleted" && type !== "folder" && path.startsWith(`${workdir}/`))
    .map(({ path }) => path.slice(workdir.length + 1));
}

export type WorkEvidence = { work_sha256: string; no_change: boolean; added: string[]; modified: string[]; deleted: string[] };

/** What a verdict says of the work: paths in the workdir without its slash, others absolute. Folders are no change of their own. */
export function workEvidence(work: WorkLayer, { environment: { workdir } }: Task): WorkEvidence {
  const shown = work.changes.filter(({ path, type }) => type !== "folder" && !isInside(path.slice(1), beside));
  const names = (kind: LayerEntry["kind"]) =>
    shown
      .filter((change) => change.kind === kind)
      .map(({ path }) => (path.startsWith(`${workdir}/`) ? path.slice(workdir.length + 1) : path));
  return {
    work_sha256: work.sha256,
    no_change: shown.length === 0,
    added: names("added"),
    modified: names("modified"),
    deleted: names("deleted"),
  };
}
