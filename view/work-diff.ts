/** What a rollout changed, as a diff against its task's own files, which a sandbox that is made for it shows. */
import { posix } from "node:path";
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { AlidadeError } from "../base/errors.ts";
import { isBelow } from "../base/files/file-tree.ts";
import { type Change, type LayerEntry, openLayer, readLayer } from "../base/files/layer.ts";
import type { RolloutRecord } from "../base/schema/rollout.ts";
import type { Task } from "../base/schema/task.ts";
import { freshSandbox } from "../graders/index.ts";
import type { Sandbox, SandboxBackend } from "../sandboxes/index.ts";
import type { NetworkRules } from "../sandboxes/network/index.ts";
import { visibleText } from "./text/visible-text.ts";

/** Where sandboxes of a run's tasks are made again. */
export type RunPlace = {
  backend: SandboxBackend;
  tasks: ReadonlyMap<string, Task>;
  /** Labels of new sandboxes, and what these may reach. */
  owner: { run_id: string; owner: string; rules: NetworkRules };
};

/** `diff`: unified, as `git apply` reads it; null where `note` says why there is none. */
export type PathDiff = { path: string; change: Change["kind"]; diff: string | null; note: string | null };

/** Bounds of what is compared: a policy can write thousands of long files, which no person reads. */
const mostBytes = 512 * 1024;
const mostFiles = 500;
/** Two texts with nothing in common take long to compare. */
const compareMs = 2_000;

/**
 * By path. Throws `not_found` where the rollout kept no work, or its task is not among the run's any more, and
 * `sandbox_unavailable` where no sandbox of the task can be made here.
 */
export async function workDiff(run: RunPlace, blobs: string, record: RolloutRecord, signal: AbortSignal): Promise<PathDiff[]> {
  const { task_id, rollout_id, work } = record;
  const task = run.tasks.get(task_id);
  if (work === null) throw new AlidadeError("not_found", `${rollout_id} kept no work`, { param: "rollout" });
  if (task === undefined) throw new AlidadeError("not_found", `the task ${task_id} is not among the run's tasks any more`);
  const layer = await openLayer(blobs, work.sha256);
  const setUp = record.setup && (await openLayer(blobs, record.setup.sha256));
  const now = new Map<string, string | null>();
  for await (const entry of readLayer(layer)) if (entry.type === "file" && now.size < mostFiles) now.set(entry.path, await textOf(entry));
  await using before = await freshSandbox({ task, signal }, run.backend, { ...run.owner, setUp })();
  const diffs: PathDiff[] = [];
  for (const change of layer.changes) {
    if (change.type === "folder") continue;
    const old = diffs.length < mostFiles ? await textBefore(before, change.path, signal) : { state: "unread" as const };
    diffs.push({ path: change.path, ...compared(change, old, now.get(change.path) ?? null, task.environment.workdir) });
  }
  return diffs;
}

type Before = { state: "text"; text: string } | { state: "absent" } | { state: "unread" };

function compared(change: Change, old: Before, now: string | null, workdir: string): Omit<PathDiff, "path"> {
  const { path, type, kind, target } = change;
  const is = kind === "deleted" ? "deleted" : old.state === "absent" ? "added" : "modified";
  const unshown = (note: string) => ({ change: is, diff: null, note }) as const;
  if (type === "link" || type === "hardlink") return unshown(`a link to ${target}`);
  if (old.state === "unread" || (is !== "deleted" && now === null)) return unshown(`${change.size} bytes, which are no short text`);
  if (is === "deleted" && old.state === "absent") return unshown("a folder, or no file");
  if (oneLine(path) !== path) return unshown("its name holds characters that a diff cannot");
  const name = isBelow(path, workdir) ? posix.relative(workdir, path) : path.slice(1);
  const before = old.state === "text" ? old.text : "";
  const names = [is === "added" ? "/dev/null" : `a/${name}`, is === "deleted" ? "/dev/null" : `b/${name}`] as const;
  if (before === now) return unshown("its mode or owner alone");
  const diff = createTwoFilesPatch(...names, before, now ?? "", undefined, undefined, {
    context: 3,
    timeout: compareMs,
    headerOptions: FILE_HEADERS_ONLY,
  });
  return diff === undefined ? unshown("nothing in common with what was there") : { change: is, diff, note: null };
}

/** null: it is too long, or no text. */
async function textOf({ content, size }: LayerEntry): Promise<string | null> {
  if (content === null || size > mostBytes) return null;
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const text = bytes.toString("utf8");
  return bytes.equals(Buffer.from(text)) && isText(text) ? text : null;
}

async function textBefore(sandbox: Sandbox, path: string, signal: AbortSignal): Promise<Before> {
  const look = '[ -f "$1" ] && [ ! -L "$1" ] || exit 44; cat "$1"';
  const argv = ["sh", "-c", look, "sh", sandbox.path(path)];
  const { exit_code, stdout, dropped_bytes } = await sandbox.exec(argv, {
    user: "root",
    signal,
    timeout_ms: 60_000,
    max_output_bytes: mostBytes,
  });
  if (exit_code === 44) return { state: "absent" };
  return exit_code === 0 && dropped_bytes === 0 && isText(stdout) ? { state: "text", text: stdout } : { state: "unread" };
}

/** Decoding writes U+FFFD for bytes that are no text. */
function isText(text: string): boolean {
  return !text.includes("\0") && !text.includes("\ufffd");
}

/** An agent names its files and links as it likes: a line end in a name would begin a line of the diff. */
function oneLine(name: string): string {
  return visibleText(name).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** A diff has marks of its own at the beginning of each line; `#` is none of them. */
export function renderDiff(diffs: readonly PathDiff[], paint: (line: string) => string): string {
  if (diffs.length === 0) return "# nothing was changed\n";
  return diffs.map((one) => [noteOf(one), ...(one.diff ?? "").split("\n")].map(paint).join("\n")).join("");
}

function noteOf({ path, change, note }: PathDiff): string {
  return oneLine(`# ${change} ${path}${note === null ? "" : `: ${note}`}`);
}
