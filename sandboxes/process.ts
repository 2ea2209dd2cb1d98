/**
 * Sandboxes without Docker: a folder, a clean environment, and processes that are all found again. It isolates nothing:
 * a command here can do what the user who runs Alidade can do, and every record says so (`isolation: none`).
 */
import { lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { asAlidadeError } from "../errors.ts";
import { checkSpec, leaseDeadline } from "./docker-container.ts";
import { hostId } from "./owner.ts";
import { removeSandboxFolder } from "./process-folder.ts";
import { ProcessSandbox } from "./process-sandbox.ts";
import { type Reaped, reasonToRemove, removeInto } from "./reap.ts";
import type { Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";

export const localProcess: SandboxBackend = {
  name: "process",
  title: "processes of this machine, isolated from nothing",
  isolation: "none",
  unavailable: async () =>
    process.platform === "win32" ? "The process sandbox needs Linux or macOS. On Windows use Docker, or run Alidade in WSL." : null,
  create,
  reap,
};

const prefix = "alidade-sandbox-";
const ownerFile = "owner.json";

const Owner = z.strictObject({ run_id: z.string(), owner: z.string(), host: z.string(), lease: z.number() });

async function create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
  checkSpec(spec);
  signal.throwIfAborted();
  // Real, because programs compare their working directory with what they were told.
  const folder = await mkdtemp(join(await realpath(tmpdir()), prefix));
  try {
    const owner: z.infer<typeof Owner> = {
      run_id: spec.run_id,
      owner: spec.owner,
      host: await hostId(),
      lease: leaseDeadline(spec.limits),
    };
    await writeFile(join(folder, ownerFile), JSON.stringify(owner));
    const sandbox = new ProcessSandbox(folder, spec);
    for (const inside of [spec.workdir, "/home/agent", "/tmp"]) await mkdir(sandbox.path(inside), { recursive: true });
    for (const [inside, source] of Object.entries(spec.mounts)) {
      await lstat(source);
      await mkdir(dirname(sandbox.path(inside)), { recursive: true });
      await symlink(source, sandbox.path(inside));
    }
    signal.throwIfAborted();
    return sandbox;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw asAlidadeError(error, signal.aborted ? "cancelled" : "sandbox_unavailable", "Making a process sandbox: ");
  }
}

async function reap({ all = false }: { all?: boolean }, signal: AbortSignal): Promise<Reaped> {
  const root = await realpath(tmpdir());
  const host = await hostId();
  const reaped: Reaped = { removed: [], failed: [] };
  for (const name of await readdir(root)) {
    signal.throwIfAborted();
    if (!name.startsWith(prefix)) continue;
    const folder = join(root, name);
    const owner = await readOwner(folder);
    if (owner === null || owner.host !== host) continue;
    const reason = await reasonToRemove(owner, host, all);
    if (reason === null) continue;
    await removeInto(reaped, `process sandbox ${folder} of run ${owner.run_id} (${reason})`, () => removeSandboxFolder(folder, []));
  }
  return reaped;
}

/** null for a folder that is none of ours, or another user's. */
async function readOwner(folder: string): Promise<z.infer<typeof Owner> | null> {
  try {
    return Owner.parse(JSON.parse(await readFile(join(folder, ownerFile), "utf8")));
  } catch {
    return null;
  }
}
