/** Makes and starts a container whose layer is held to its disk, by its own file system where that can be. */
import { posix } from "node:path";
import type Docker from "dockerode";
import type { Limits } from "../../base/schema/task.ts";
import { engineWork } from "./client.ts";
import { localPid } from "./container-door.ts";
import { putArchive } from "./container-files.ts";
import { engineTraits } from "./engine-traits.ts";
import { capLayer, isCapped, type MissingFolder } from "./layer/capped-layer.ts";
import { makeContainer } from "./make-container.ts";
import { pathStat } from "./path-stat.ts";

export type StartedContainer = { container: Docker.Container; pid: number | null; disk_limit: "overlay" | "watchdog"; hasFolder: boolean };

/** `before`: what is done with it before it starts. */
export async function startContainer(
  docker: Docker,
  request: Docker.ContainerCreateOptions,
  { disk_mb }: Pick<Limits, "disk_mb">,
  wanted: StartedContainer["disk_limit"],
  missing: MissingFolder | null,
  signal: AbortSignal,
  before: (container: Docker.Container) => Promise<void> = async () => undefined,
): Promise<StartedContainer> {
  const container = await makeContainer(docker, request, signal);
  await before(container);
  if ((await engineTraits(docker)).closesRoot) await openRoot(container);
  // Folders above it would get other owners and modes than the image's.
  const folder = missing !== null && posix.dirname(missing.path) === "/" ? missing : null;
  const capped = wanted === "overlay" && (await capLayer(container, disk_mb, folder));
  await engineWork(docker).run(signal, () => container.start());
  signal.throwIfAborted();
  const pid = await localPid(docker, container.id);
  const holds = capped && pid !== null && (await isCapped(pid, disk_mb));
  return { container, pid, disk_limit: holds ? "overlay" : "watchdog", hasFolder: holds && folder !== null };
}

/** As Docker has it: root may have no capability to write where the mode forbids it. */
async function openRoot(container: Docker.Container): Promise<void> {
  if ((await pathStat(container, "/"))?.mode === 0o555) await makeFolder(container, "/.", 0);
}

export async function makeFolder(container: Docker.Container, path: string, user: number): Promise<void> {
  const owner = { uid: user, gid: user };
  await putArchive(container, "/", [{ name: `${path.slice(1)}/`, type: "directory", mode: 0o755, owner, mtime: new Date() }], path);
}
