/**
 * Folders of this machine in a container. An engine that sees them mounts them; for any other (another machine, or this
 * process is in a container itself) each becomes a named volume there, filled once through the engine's own connection.
 */
import { access } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import { hostId } from "../../../base/host/owner.ts";
import { reasonToRemove } from "../../../base/host/reap.ts";
import { SharedWork } from "../../../base/host/shared-work.ts";
import { folderContent, folderEntries, wholeSince } from "../../folder-archive.ts";
import { engineWork, isNotFound, perEngine, statusOf } from "../client.ts";
import { belongingsOf, emptyFile, labels } from "../container.ts";
import { putArchive } from "../container-files.ts";
import { engineTraits } from "../engine-traits.ts";
import { noteUse } from "../images/image-uses.ts";
import { unstarted } from "../images/unstarted.ts";
import { pathStat } from "../path-stat.ts";

export type FoldersInside = {
  /** Path inside -> folder on this machine. */
  folders: Record<string, string>;
  /** Files of one folder: path inside -> name. */
  files: { folder: string; names: Record<string, string> };
};

const sees = perEngine(() => new Map<"answer", Promise<boolean>>());

/** Read-only mounts for a container of `image`, which the engine has. */
export async function mountsAt(docker: Docker, image: string, wanted: FoldersInside, signal: AbortSignal): Promise<Docker.MountSettings[]> {
  const { folders, files } = wanted;
  const { ownFiles } = await engineTraits(docker);
  const names = { ...files.names, ...Object.fromEntries(ownFiles.map((inside) => [inside, emptyFile])) };
  if (await seesOurs(docker, image, join(files.folder, "image.json"))) {
    // Podman makes a folder that is not there.
    for (const folder of Object.values(folders)) await access(folder);
    const single = Object.entries(names).map(([inside, name]) => bind(inside, join(files.folder, name)));
    return [...Object.entries(folders).map(([inside, folder]) => bind(inside, folder)), ...single];
  }
  const volumes = Object.entries(folders).map(async ([inside, folder]) => {
    const { Name } = await volumeOf(docker, image, folder, signal);
    return { Type: "volume", Target: inside, Source: Name, ReadOnly: true, VolumeOptions: { NoCopy: true } } as Docker.MountSettings;
  });
  // A volume is a folder; one file of it is a path of the engine's own machine.
  // All at once: one that fails while another is waited for would end the process.
  const [{ Mountpoint }, ...mounts] = await Promise.all([volumeOf(docker, image, files.folder, signal), ...volumes]);
  return [...mounts, ...Object.entries(names).map(([inside, name]) => bind(inside, `${Mountpoint}/${name}`))];
}

function bind(inside: string, source: string): Docker.MountSettings {
  return { Type: "bind", Target: inside, Source: source, ReadOnly: true };
}

const look = "/alidade/look";

/** Where a folder of this machine lies on the engine's: `file` is one in it. */
export async function folderAt(
  docker: Docker,
  image: string,
  { folder, file }: { folder: string; file: string },
  signal: AbortSignal,
): Promise<string> {
  return (await seesOurs(docker, image, join(folder, file))) ? folder : (await volumeOf(docker, image, folder, signal)).Mountpoint;
}

/** Whether the engine sees this machine's folders, by one file of ours. */
function seesOurs(docker: Docker, image: string, file: string): Promise<boolean> {
  const known = sees(docker);
  const answer = known.get("answer") ?? seesFile(docker, image, file);
  known.set("answer", answer);
  answer.catch(() => known.delete("answer"));
  return answer;
}

/** Tried out, for an address says nothing: a local socket may lead to another machine, and TCP to this one. */
async function seesFile(docker: Docker, image: string, file: string): Promise<boolean> {
  try {
    await using one = await unstarted(docker, image, { HostConfig: { NetworkMode: "none", Mounts: [bind(look, dirname(file))] } });
    return (await pathStat(one.container, `${look}/${basename(file)}`)) !== null;
  } catch (error) {
    // The engine's answer to a folder that it does not have: 400 of Docker, 500 of Podman.
    if (statusOf(error) === 400 || statusOf(error) === 500) return false;
    throw error;
  }
}

const filling = perEngine(() => new Map<string, SharedWork<void>>());
/** Volumes that were seen to be whole. */
const whole = perEngine(() => new Set<string>());

async function volumeOf(docker: Docker, image: string, folder: string, signal: AbortSignal): Promise<Docker.VolumeInspectInfo> {
  const { hash, bytes } = await folderContent(folder);
  const name = `alidade-mount-${hash.slice(0, 24)}`;
  const found = whole(docker).has(name) ? await inspect(docker, name) : null;
  // One without the label was made empty by an engine that another process had remove it, between a look and a container.
  if (found?.Labels?.[labels.mount] === hash) return found;
  // As long as this process lives, it is in use.
  await noteUse(name, {});
  const work = filling(docker).get(name) ?? new SharedWork<void>();
  filling(docker).set(name, work);
  await work.join(signal, (stop) => ensureFilled(docker, image, { name, hash, bytes, folder }, stop));
  whole(docker).add(name);
  const made = await inspect(docker, name);
  if (made !== null) return made;
  throw new AlidadeError("sandbox_unavailable", `The volume ${name} of the Docker engine was removed while a sandbox was made.`);
}

async function inspect(docker: Docker, name: string): Promise<Docker.VolumeInspectInfo | null> {
  return docker
    .getVolume(name)
    .inspect()
    .catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
}

type Filling = { name: string; hash: string; bytes: number; folder: string };

const place = "/alidade/volume";
const waitMs = 200;

/** One process fills it, whichever made the container with the volume's own name; the others wait for that one. */
async function ensureFilled(docker: Docker, image: string, filling: Filling, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    await using filler = await claim(docker, image, filling);
    if (filler === null) {
      await sleep(waitMs, undefined, { signal });
      continue;
    }
    const found = await pathStat(filler.container, place);
    if (found?.mtime.getTime() !== wholeSince.getTime()) await fill(filler.container, filling);
    return;
  }
}

/** A container that is never started, with the volume in it; null while another process has it. */
async function claim(docker: Docker, image: string, { name, hash, bytes }: Filling) {
  const Labels = { [labels.mount]: hash, [labels.mountBytes]: String(bytes) };
  const VolumeOptions = { NoCopy: true, Labels, DriverConfig: { Name: "local", Options: {} } };
  const Mounts: Docker.MountSettings[] = [{ Type: "volume", Target: place, Source: name, VolumeOptions }];
  try {
    return await unstarted(docker, image, { name: `${name}-filler`, HostConfig: { NetworkMode: "none", Mounts } });
  } catch (error) {
    if (statusOf(error) !== 409 && !/already in use/i.test(String(error))) throw error;
    await removeAbandoned(docker, `${name}-filler`);
    return null;
  }
}

async function removeAbandoned(docker: Docker, name: string): Promise<void> {
  const container = docker.getContainer(name);
  const found = await container.inspect().catch(() => null);
  if (found === null || (await reasonToRemove(belongingsOf(found.Config.Labels), await hostId(), {})) === null) return;
  await engineWork(docker)
    .run(undefined, () => container.remove({ force: true }))
    .catch(() => {}); // another process was faster
}

async function fill(container: Docker.Container, { name, folder }: Filling): Promise<void> {
  try {
    await putArchive(container, "/", folderEntries(folder, place.slice(1)), place);
  } catch (error) {
    throw asAlidadeError(error, "sandbox_unavailable", `The volume ${name} could not be filled with ${folder}: `);
  }
}
