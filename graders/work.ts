/**
 * What an agent left behind, against what it was given: a layer that was read from outside. Nothing of the agent's runs
 * here, and its `.git`, attributes and ignore lists have no say.
 */
import { AlidadeError } from "../errors.ts";
import { isInside, matchesAny, type TreeFile } from "../files/file-tree.ts";
import { keepLayer, type LayerEntry, readLayer, type WorkLayer } from "../files/layer.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { Task } from "../schema/task.ts";

/**
 * Kept with the work and never graded with: Python runs these in the place of the sources beside them, the hidden tests'
 * sources too.
 */
const caches = ["**/__pycache__", "**/*.pyc", "**/.pytest_cache"];
/** No change of the work itself: an agent that only asks git writes there. */
const beside = [...caches, "**/.git"];

/** The folders that the work is in, by `environment.work`. */
function workPaths({ work, workdir }: Task["environment"]): string[] {
  if (work === "workdir") return [workdir];
  return work === "layer" ? ["/"] : work;
}

/**
 * Takes the work out of a frozen sandbox into `<folder>/<hash>.tar.gz`. `delivered`: the files that were put into the
 * workdir. Throws what the agent did to its workdir as the policy's.
 */
export async function takeWork(
  sandbox: Sandbox,
  { environment }: Task,
  delivered: TreeFile[],
  folder: string,
  signal?: AbortSignal,
): Promise<WorkLayer> {
  const { workdir } = environment;
  const entries = whileWorkdirIsThere(sandbox.changes(workPaths(environment), signal), workdir);
  try {
    return await keepLayer(entries, folder, new Map(delivered.map((file) => [`${workdir}/${file.path}`, file])));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    throw new AlidadeError("store_full", `no space left below ${folder} for the work: free some space`, { cause: error });
  }
}

async function* whileWorkdirIsThere(entries: AsyncIterable<LayerEntry>, workdir: string): AsyncGenerator<LayerEntry> {
  const isGone = () => new AlidadeError("output_unreadable", `The workdir ${workdir} is gone, or is no folder any more.`);
  try {
    for await (const entry of entries) {
      if (entry.type !== "folder" && (workdir === entry.path || workdir.startsWith(`${entry.path}/`))) throw isGone();
      yield entry;
    }
  } catch (error) {
    throw error instanceof AlidadeError && error.code === "not_found" ? isGone() : error;
  }
}

/** Arguments of one `rm`: of the longest paths that there are this many fit into a command. */
const mostRemoved = 400;

/** What of a work is not put into the sandbox that grades it. Paths are relative to the workdir. */
export type Except = {
  /** Globs of what stays as it was delivered. */
  protected?: string[];
  /** Files that are put there afterwards and win. */
  over?: TreeFile[];
};

/** Puts a work into a fresh sandbox of its task: what it deleted is removed, then the rest is put in place. */
export async function placeWork(sandbox: Sandbox, task: Task, work: WorkLayer, except: Except, signal: AbortSignal): Promise<void> {
  const isPlaced = placedBy(task.environment.workdir, except);
  const gone = work.changes.filter((change) => change.type === "deleted" && isPlaced(change)).map(({ path }) => sandbox.path(path));
  for (let at = 0; at < gone.length; at += mostRemoved) await remove(sandbox, gone.slice(at, at + mostRemoved), signal);
  await sandbox.putEntries(only(readLayer(work), isPlaced));
}

/** A folder that the agent may have changed to remove what is in it gets its user's rights first. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
const removeAll = 'rm -rf -- "$@" 2>/dev/null && exit; for path; do chmod -f u+rwx -- "${path%/*}"; done; rm -rf -- "$@"';

async function remove(sandbox: Sandbox, paths: string[], signal: AbortSignal): Promise<void> {
  const { exit_code, stderr } = await sandbox.exec(["sh", "-c", removeAll, "sh", ...paths], { signal, timeout_ms: 60_000 });
  if (exit_code !== 0) throw new AlidadeError("sandbox_error", `could not remove what the work deleted: ${stderr.slice(-500)}`);
}

async function* only(entries: AsyncIterable<LayerEntry>, isPlaced: (entry: LayerEntry) => boolean): AsyncGenerator<LayerEntry> {
  for await (const entry of entries) if (isPlaced(entry)) yield entry;
}

function placedBy(workdir: string, { protected: globs = [], over = [] }: Except) {
  const files = new Set(over.map(({ path }) => path));
  const folders = new Set([...files].flatMap((path) => parents(path)));
  const fixed = globs.flatMap((glob) => {
    const prefix = glob.slice(0, Math.max(0, glob.search(/[^/]*[*?]|$/))).replace(/\/$/, "");
    return prefix === "" ? [] : [prefix, ...parents(prefix)];
  });
  return ({ path, type, kind }: Pick<LayerEntry, "path" | "type" | "kind">): boolean => {
    if (isInside(path.slice(1), caches)) return false;
    if (!path.startsWith(`${workdir}/`)) return true;
    const name = path.slice(workdir.length + 1);
    if (matchesAny(name, globs) || files.has(name) || parents(name).some((parent) => files.has(parent))) return false;
    // What is no folder any more would take what is below it along.
    if (type === "folder") return true;
    if (folders.has(name) || fixed.includes(name)) return false;
    return globs.length === 0 || kind !== "modified" || type !== "link";
  };
}

/** `a/b` and `a` for `a/b/c`. */
function parents(path: string): string[] {
  return path
    .split("/")
    .slice(0, -1)
    .map((_, index, parts) => parts.slice(0, index + 1).join("/"));
}

/** The paths that the work added, relative to the workdir. */
export function addedPaths({ changes }: WorkLayer, workdir: string): string[] {
  return changes
    .filter(({ kind, path }) => kind === "added" && path.startsWith(`${workdir}/`))
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
