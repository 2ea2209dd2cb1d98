/** Collects what a verifier in a container of its own gets of the agent's files: declared places, and what hooks collect. */
import { posix } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { matchesAny, type TreeFile } from "../../base/files/file-tree.ts";
import type { Sandbox } from "../../sandboxes/index.ts";

export type Artifact = { source: string; exclude: readonly string[] };

/** Files with the absolute folder that they lie in. */
export type Collected = { folder: string; files: TreeFile[] }[];

/** A folder that no task knows of. */
const copies = "/.alidade-artifacts";
/** $1: the target folder; $2: the file or folder to copy, which may be absent. */
const copy = 'mkdir -p "$1" && { [ ! -e "$2" ] || cp -RPp -- "$2" "$1/"; }';

/**
 * Copies each place aside, ends all processes, and reads the copies from outside. Only regular files cross, no links. A place
 * that does not exist has no files.
 */
export async function collectArtifacts(sandbox: Sandbox, artifacts: readonly Artifact[], signal: AbortSignal): Promise<Collected> {
  // Root makes the folder, because the user who copies may not write to `/`.
  await sandbox.exec(["mkdir", "-m", "777", copies], { cwd: "/", user: "root", signal });
  for (const [index, { source }] of artifacts.entries()) {
    const { exit_code, stderr } = await sandbox.exec(["sh", "-c", copy, "sh", `${copies}/${index}`, source], {
      cwd: "/",
      signal,
      timeout_ms: 120_000,
    });
    if (exit_code !== 0) throw new AlidadeError("output_unreadable", `The artifact ${source} could not be copied: ${stderr.slice(-300)}`);
  }
  await sandbox.freeze();
  const collected: Collected = [];
  for (const [index, { source, exclude }] of artifacts.entries()) {
    const files = await sandbox.readFiles(`${copies}/${index}`);
    collected.push({ folder: posix.dirname(source), files: files.filter(({ path }) => !isExcluded(path, exclude)) });
  }
  return collected;
}

/** Works as tar's --exclude: a pattern may match the whole path, any end of it, or one of its parts. */
function isExcluded(path: string, exclude: readonly string[]): boolean {
  const parts = path.split("/");
  const named = [path, ...parts.map((_, index) => parts.slice(index).join("/")), ...parts];
  return exclude.length > 0 && named.some((one) => matchesAny(one, exclude));
}
