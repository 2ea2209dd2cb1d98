/** A kept work as it was when it was taken out: with what became of each path, which its tarball does not tell. */
import { posix } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { type Change, openLayer, type WorkLayer } from "../../base/files/layer.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import { argumentBatches } from "../../sandboxes/index.ts";

/** Says of each path: f(older), o(ther), or n(othing). A link is no folder, whatever it leads to. */
const lookAt =
  'for path; do if [ -L "$path" ]; then printf o; elif [ -d "$path" ]; then printf f; elif [ -e "$path" ]; then printf o; else printf n; fi; done';

/** `fresh`: a sandbox as it was delivered. Throws `not_found` and `store_error` where the work cannot be read. */
export async function reopenWork(blobs: string, sha256: string, fresh: () => Promise<Sandbox>, signal: AbortSignal): Promise<WorkLayer> {
  const work = await openLayer(blobs, sha256);
  if (work.changes.every(({ type }) => type === "deleted")) return work;
  await using delivered = await fresh();
  const before = await standing(
    delivered,
    work.changes.map(({ path }) => path),
    signal,
  );
  return { ...work, changes: work.changes.map((change) => ({ ...change, kind: kindOf(change, before) })) };
}

async function standing(sandbox: Sandbox, paths: string[], signal: AbortSignal): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const inside = new Map(paths.map((path) => [sandbox.path(path), path]));
  for (const some of argumentBatches(inside.keys())) {
    const argv = ["sh", "-c", lookAt, "sh", ...some];
    const { stdout, exit_code, stderr } = await sandbox.exec(argv, { user: "root", signal, timeout_ms: 60_000 });
    if (exit_code !== 0 || stdout.length !== some.length)
      throw new AlidadeError("sandbox_error", `could not look at what the work changed: ${stderr.slice(-500)}`);
    for (const [index, path] of some.entries()) found.set(inside.get(path) ?? path, stdout[index] as string);
  }
  return found;
}

function kindOf({ path, kind }: Change, before: Map<string, string>): Change["kind"] {
  if (kind === "deleted") return kind;
  // Below a link that the work replaced by a folder stands what the link led to.
  const isElsewhere = (before.get(posix.dirname(path)) ?? "f") !== "f";
  return before.get(path) === "n" || isElsewhere ? "added" : "modified";
}
