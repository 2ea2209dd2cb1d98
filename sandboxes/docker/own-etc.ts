/**
 * Files of /etc in the sandbox's own layer, where root inside may write to them. Images add names to `hosts` when they
 * start, and packages add users to `passwd` and `group`. What is written there counts against the layer's limit. A name leads
 * nowhere but to the sandbox's own loopback. Users that were added are a part of the work: its files may be theirs.
 * A sandbox whose root is closed has all of these files read-only.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import type { LayerEntry } from "../../base/files/layer.ts";
import type { SandboxSpec } from "../sandbox.ts";
import type { etcFiles } from "./container.ts";
import { putArchive } from "./container-files.ts";
import { engineTraits } from "./engine-traits.ts";

type EtcName = (typeof etcFiles)[number];

const ownNames = ["hosts", "passwd", "group"] as const satisfies EtcName[];
/** A snapshot has the users of the sandbox that it was taken of. */
const namesOfSnapshot = ["hosts"] as const satisfies EtcName[];
/** Part of a work where they were changed. */
const userFiles = ["/etc/passwd", "/etc/group"];
/** The time of a file that was not written to since. A clock inside never shows it by itself. */
const untouched = new Date("2001-01-01T00:00:00Z");

/** [] where there are none. Podman mounts a hosts file of its own wherever there is none of ours. */
export async function ownEtcNames(
  docker: Docker,
  { writable, snapshot }: Pick<SandboxSpec, "writable" | "snapshot">,
): Promise<readonly EtcName[]> {
  if (writable !== "root" || (await engineTraits(docker)).requests !== "docker") return [];
  return snapshot === undefined ? ownNames : namesOfSnapshot;
}

/** Before it starts. `etc`: the host folder with the files. */
export async function putOwnEtc(container: Docker.Container, etc: string, names: readonly EtcName[]): Promise<void> {
  const whose = { owner: { uid: 0, gid: 0 }, mtime: untouched };
  const toFile = async (name: EtcName) => {
    const content = await readFile(join(etc, name));
    return { ...whose, name: `etc/${name}`, type: "file" as const, mode: 0o644, size: content.length, content };
  };
  await putArchive(container, "/", await Promise.all(names.map(toFile)), "/etc");
}

/** Throws where the engine mounted a hosts file of its own: a file of the host's disk, which root inside could fill it by. */
export async function assertOwnHosts(container: Docker.Container): Promise<void> {
  const { HostsPath } = await container.inspect();
  if (HostsPath) throw new Error("the engine mounts an /etc/hosts of its own into a container that has no network");
}

/** The places of /etc that are no part of a layer, without those that users may be added to. */
export function withoutUserFiles(hidden: readonly string[]): string[] {
  return hidden.filter((path) => !userFiles.includes(path));
}

/** Is it a file of users as we put it there? Then it is no change of the work. */
export function isUntouched({ path, type, mtime }: Pick<LayerEntry, "path" | "type" | "mtime">): boolean {
  return userFiles.includes(path) && type === "file" && mtime.getTime() === untouched.getTime();
}
