/**
 * `/etc/hosts` as a file of the sandbox's own layer, where root inside may write to it: images do so when they start. What is
 * written there counts against the layer's limit, leads nowhere but to the sandbox's own loopback, and is no part of a work.
 * Any other sandbox has the file read-only.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import type { SandboxSpec } from "../sandbox.ts";
import { putArchive } from "./container-files.ts";
import { engineTraits } from "./engine-traits.ts";

/** Podman mounts a hosts file of its own wherever there is none of ours. */
export async function hasOwnHosts(docker: Docker, { user, writable }: Pick<SandboxSpec, "user" | "writable">): Promise<boolean> {
  return user === "root" && writable === "root" && (await engineTraits(docker)).requests === "docker";
}

/** Before it starts. `etc`: the host folder with the file. */
export async function putOwnHosts(container: Docker.Container, etc: string): Promise<void> {
  const content = await readFile(join(etc, "hosts"));
  const whose = { owner: { uid: 0, gid: 0 }, mtime: new Date() };
  const file = { ...whose, name: "etc/hosts", type: "file" as const, mode: 0o644, size: content.length, content };
  await putArchive(container, "/", [file], "/etc");
}

/** Throws where the engine mounted one of its own: a file of the host's disk, which root inside could fill it by. */
export async function assertOwnHosts(container: Docker.Container): Promise<void> {
  const { HostsPath } = await container.inspect();
  if (HostsPath) throw new Error("the engine mounts an /etc/hosts of its own into a container that has no network");
}
