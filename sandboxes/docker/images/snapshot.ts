/**
 * A sandbox as it is, kept as an image: its own layer, and what lies in its memory file systems. Its processes are not kept.
 * The image is made twice: memory file systems are no part of a layer, so what is in them is put into the image of the
 * layer, where a container that is never started holds it.
 */
import { randomBytes } from "node:crypto";
import { addAbortSignal, type Readable } from "node:stream";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import type { TarEntry } from "../../../base/files/pack-tar.ts";
import { readTar } from "../../../base/files/read-tar.ts";
import { engineWork, isNotFound } from "../client.ts";
import type { MemoryPlace } from "../container.ts";
import { assertNotCut, putArchive } from "../container-files.ts";
import { engineTraits } from "../engine-traits.ts";
import { imageAt } from "./image-at.ts";
import { noteUse } from "./image-uses.ts";
import { unstarted } from "./unstarted.ts";

const repository = "alidade/snapshot";
/** The image that the first of a line of snapshots was made from: what it starts is started again. */
const originLabel = "alidade.snapshot.origin";

/** Returns the name of the image. `origin`: the content id of the image that the sandbox was made from. */
export async function takeSnapshot(
  docker: Docker,
  container: Docker.Container,
  { origin, places, run_id }: { origin: string; places: MemoryPlace[]; run_id: string },
  signal: AbortSignal,
): Promise<string> {
  const tag = randomBytes(8).toString("hex");
  const layer = `${repository}:${tag}-layer`;
  const commit = (from: Docker.Container, name: string) => {
    const options = { repo: repository, tag: name, pause: false, changes: `LABEL ${originLabel}=${origin}` };
    return engineWork(docker).run(signal, () => from.commit(options));
  };
  try {
    await commit(container, `${tag}-layer`);
    await using holder = await unstarted(docker, layer);
    for (const { target } of places) await copyFolder(container, holder.container, target, signal);
    await commit(holder.container, tag);
    await noteUse((await imageAt(docker, `${repository}:${tag}`).inspect()).Id, { run_id });
    return `${repository}:${tag}`;
  } catch (error) {
    signal.throwIfAborted();
    throw asAlidadeError(error, "sandbox_error", "The sandbox could not be kept as a snapshot: ");
  } finally {
    await imageAt(docker, layer)
      .remove()
      .catch(() => {}); // it was not made, or goes with the snapshot
  }
}

/** The content id of the image that a snapshot began with. Throws `not_found`. */
export async function originOf(docker: Docker, snapshot: string): Promise<string> {
  const found = await imageAt(docker, snapshot)
    .inspect()
    .catch((error: unknown) => {
      if (isNotFound(error)) return null;
      throw error;
    });
  const origin = found?.Config.Labels?.[originLabel];
  if (origin !== undefined) return origin;
  throw new AlidadeError("not_found", `There is no snapshot ${JSON.stringify(snapshot)} on the Docker engine.`, { param: "snapshot" });
}

/** Puts what a snapshot's memory file systems held into those of a container that was made from it. `user`: whose it is where the engine does not tell. */
export async function restorePlaces(
  docker: Docker,
  snapshot: string,
  container: Docker.Container,
  { places, user }: { places: MemoryPlace[]; user: number },
  signal: AbortSignal,
): Promise<void> {
  await using holder = await unstarted(docker, snapshot);
  const { faithfulArchives } = await engineTraits(docker);
  for (const { target } of places) await copyFolder(holder.container, container, target, signal, faithfulArchives ? null : user);
}

/** No error when it is gone. */
export async function removeSnapshot(docker: Docker, snapshot: string): Promise<void> {
  await originOf(docker, snapshot);
  await imageAt(docker, snapshot).remove({ force: true });
}

/** The engine packs it on one side and unpacks it on the other; links in it are not followed. `user`: whose all of it becomes. */
async function copyFolder(
  from: Docker.Container,
  to: Docker.Container,
  folder: string,
  signal: AbortSignal,
  user: number | null = null,
): Promise<void> {
  const archive = addAbortSignal(signal, (await from.getArchive({ path: `${folder}/.` })) as Readable);
  try {
    if (user === null) return void (await to.putArchive(archive, { path: folder, abortSignal: signal } as { path: string }));
    await putArchive(to, folder, ownedBy(user, archive, folder), folder);
  } finally {
    // The engine would go on packing for a reader that is gone.
    archive.destroy();
  }
}

/** What is no file, folder or link is left out: a memory file system keeps no devices, and pipes and sockets have no content. */
async function* ownedBy(user: number, archive: Readable, folder: string): AsyncGenerator<TarEntry> {
  const owner = { uid: user, gid: user };
  for await (const { header, content } of readTar(archive)) {
    const { name, type, mode = 0, mtime = new Date(0), size = 0, linkname } = header;
    assertNotCut(name, folder);
    if (type === "file") yield { name, type, mode, owner, mtime, size, content };
    else if (type === "directory" || type === "symlink" || type === "link") yield { name, type, mode, owner, mtime, linkname };
  }
}
