/**
 * Sandboxes without Docker: a folder, a clean environment, and processes that can all be found again. They isolate nothing:
 * a command has the rights of Alidade's user, and every record says so (`isolation: none`).
 */
import { lstat, mkdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { AlidadeError, asAlidadeError } from "../base/errors.ts";
import { removeSandboxFolder } from "../base/host/processes/process-folder.ts";
import { freeDisk, ownMemory } from "../base/host/room.ts";
import { ownedFolder, reapTemporaryFolders, temporary } from "../base/host/temporary-folder.ts";
import { checkEnvironments, checkSpec, leaseDeadline } from "./check-spec.ts";
import { checkOfTask, untilReady } from "./healthcheck.ts";
import { ProcessSandbox } from "./process/process-sandbox.ts";
import { samePlace } from "./process/same-place.ts";
import type { Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";
import { takesWithServices } from "./takes-with-services.ts";

export const localProcess: SandboxBackend = {
  name: "process",
  title: "processes of this machine, isolated from nothing",
  capabilities: { isolation: "none", network: "host", images: false, remote: false, users: ["agent"], snapshot: false },
  unavailable: async () =>
    process.platform === "win32" ? "The process sandbox needs Linux or macOS. On Windows use Docker, or run Alidade in WSL." : null,
  notes: async () =>
    (await samePlace()) === null
      ? [
          "mounts are not permitted here, so each sandbox has its own path. A harness that prints the path gives each rollout of a group another prompt; nemo-rl and nemo-gym leave such groups out",
        ]
      : [],
  prepare: async (environments) => checkEnvironments(environments, localProcess.title, localProcess.capabilities),
  takes: takesWithServices,
  room: async () => ({ memory_mb: ownMemory(), disk_mb: await freeDisk(tmpdir()) }),
  create,
  reap: reapTemporaryFolders,
};

async function create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
  checkSpec(spec);
  if (spec.snapshot !== undefined)
    throw new AlidadeError(
      "sandbox_unavailable",
      `The process sandbox has no snapshots, so none starts from ${JSON.stringify(spec.snapshot)}: use Docker.`,
      { param: "snapshot" },
    );
  signal.throwIfAborted();
  const belongings = { run_id: spec.run_id, owner: spec.owner, lease: leaseDeadline(spec.limits) };
  const folder = await ownedFolder(temporary.sandbox, belongings);
  try {
    const sandbox = new ProcessSandbox(folder, spec, await samePlace());
    for (const inside of [spec.workdir, "/home/agent", "/tmp"]) await mkdir(sandbox.outside(inside), { recursive: true });
    for (const [inside, source] of Object.entries(spec.mounts)) {
      await lstat(source);
      await mkdir(dirname(sandbox.outside(inside)), { recursive: true });
      await symlink(source, sandbox.outside(inside));
    }
    signal.throwIfAborted();
    await untilReady(sandbox, checkOfTask(spec.healthcheck), null, signal);
    return sandbox;
  } catch (error) {
    await removeSandboxFolder(folder, []);
    throw asAlidadeError(error, signal.aborted ? "cancelled" : "sandbox_unavailable", "Making a process sandbox: ");
  }
}
