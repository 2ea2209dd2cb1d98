/**
 * Files of /etc in the sandbox's own layer, where root inside may write to them. Images add names to `hosts` when they start,
 * and packages add users to `passwd` and `group`. These files count against the layer's limit. An added name leads to the
 * sandbox's own loopback at most. Added users are part of the work, because its files may belong to them. Unless
 * `writable` is `root`, all these files are read-only.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type Docker from "dockerode";
import type { LayerEntry } from "../../../base/files/layer.ts";
import type { SandboxSpec } from "../../sandbox.ts";
import type { etcFiles } from "../container.ts";
import { putArchive } from "../container-files.ts";
import { engineTraits } from "../engine-traits.ts";

type EtcName = (typeof etcFiles)[number];

const ownNames = ["hosts", "passwd", "group"] as const satisfies EtcName[];
/** A snapshot already has `passwd` and `group`, with the users of its sandbox. */
const namesOfSnapshot = ["hosts"] as const satisfies EtcName[];
/** Part of a work if they were changed. */
const userFiles = ["/etc/passwd", "/etc/group"];
/** Our files carry this time. A file with another time was written to later. A process that sets this time again only hides its own change. */
const untouched = new Date("2001-01-01T00:00:00Z");

/** Returns the names of the files to put there. Always [] on Podman, which mounts its own `hosts` unless we mount ours. */
export async function ownEtcNames(
  docker: Docker,
  { writable, snapshot }: Pick<SandboxSpec, "writable" | "snapshot">,
): Promise<readonly EtcName[]> {
  if (writable !== "root" || (await engineTraits(docker)).requests !== "docker") return [];
  return snapshot === undefined ? ownNames : namesOfSnapshot;
}

/** Puts the files into a container that has not started. `etc`: the host's folder with the files. */
export async function putOwnEtc(container: Docker.Container, etc: string, names: readonly EtcName[]): Promise<void> {
  const whose = { owner: { uid: 0, gid: 0 }, mtime: untouched };
  const toFile = async (name: EtcName) => {
    const content = await readFile(join(etc, name));
    return { ...whose, name: `etc/${name}`, type: "file" as const, mode: 0o644, size: content.length, content };
  };
  await putArchive(container, "/", await Promise.all(names.map(toFile)), "/etc");
}

/** Throws if the engine mounted a `hosts` of its own. That is a file on the host's disk, and root inside could fill the disk with it. */
export async function assertOwnHosts(container: Docker.Container): Promise<void> {
  const { HostsPath } = await container.inspect();
  if (HostsPath) throw new Error("the engine mounts an /etc/hosts of its own into a container that has no network");
}

/** Returns the hidden places without `passwd` and `group`, which are part of a layer. */
export function withoutUserFiles(hidden: readonly string[]): string[] {
  return hidden.filter((path) => !userFiles.includes(path));
}

/** Whether it is `passwd` or `group` as we put it there. Then it is no change of the work. */
export function isUntouched({ path, type, mtime }: Pick<LayerEntry, "path" | "type" | "mtime">): boolean {
  return userFiles.includes(path) && type === "file" && mtime.getTime() === untouched.getTime();
}
