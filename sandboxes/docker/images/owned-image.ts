/**
 * An image whose workdir is the sandbox's user's. Its files belong to root in most images; giving them away in each
 * container would copy all of them into its layer, so it is done once for an image and kept as a layer of its own.
 */
import { createHash } from "node:crypto";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { SharedWork } from "../../../base/host/shared-work.ts";
import { engineWork, isNotFound, perEngine } from "../client.ts";
import { profileFor } from "../confined/profile-for.ts";
import { securityOptions, ulimits } from "../container.ts";
import { pathStat } from "../path-stat.ts";
import { hasImage } from "./has-image.ts";
import { unstarted } from "./unstarted.ts";

export type OwnedImage = {
  /** To make containers from. */
  image: string;
  /** The image has no such folder: it is made in each container. */
  hasWorkdir: boolean;
};

/** Bytes; a chown of a million files takes a few megabytes, and the pages of the copied files are given back. */
const chownMemory = 512 * 1024 * 1024;

const known = perEngine(() => new Map<string, OwnedImage>());
const making = perEngine(() => new Map<string, SharedWork<OwnedImage>>());

/** `image`: a content id. `user`: uid. Throws `sandbox_unavailable` for a workdir that is no folder of its own. */
export async function ownedImage(docker: Docker, image: string, workdir: string, user: number, signal: AbortSignal): Promise<OwnedImage> {
  const key = `${image} ${workdir} ${user}`;
  const found = known(docker).get(key);
  if (found !== undefined && (found.image === image || (await hasImage(docker, found.image)))) return found;
  const work = making(docker).get(key) ?? new SharedWork<OwnedImage>();
  making(docker).set(key, work);
  const made = await work.join(signal, (stop) => make(docker, image, workdir, user, stop));
  known(docker).set(key, made);
  return made;
}

async function make(docker: Docker, image: string, workdir: string, user: number, signal: AbortSignal): Promise<OwnedImage> {
  if (!(await isFolder(docker, image, workdir))) return { image, hasWorkdir: false };
  // The whole image is not given away.
  if (user === 0 || workdir === "/") return { image, hasWorkdir: true };
  const tag = createHash("sha256").update(`${image} ${workdir} ${user}`).digest("hex").slice(0, 16);
  const name = `alidade/owned:${tag}`;
  if (!(await hasImage(docker, name))) await giveAway(docker, { image, workdir, user, tag }, signal);
  return { image: name, hasWorkdir: true };
}

async function isFolder(docker: Docker, image: string, workdir: string): Promise<boolean> {
  await using look = await unstarted(docker, image);
  const found = await pathStat(look.container, workdir);
  if (found === null || found.isFolder) return found !== null;
  throw refused(`The workdir ${workdir} of the image is a link or a file: name a folder`);
}

type Gift = { image: string; workdir: string; user: number; tag: string };

/**
 * The image's own chown, without a network, before any agent: with no more than the right to give files away. It is the
 * image's program, and with the right to search all folders an engine's own profile lets it open any file of the host by its handle.
 */
async function giveAway(docker: Docker, { image, workdir, user, tag }: Gift, signal: AbortSignal): Promise<void> {
  const chown = { Entrypoint: ["chown", "-Rh", `${user}:${user}`, workdir], User: "0:0", WorkingDir: "/" };
  const profile = await profileFor(docker, image, { watches: false }, signal);
  const rights = ["CHOWN", ...(profile === null ? [] : ["DAC_READ_SEARCH"])];
  const capabilities = { CapDrop: ["ALL"], CapAdd: rights, SecurityOpt: securityOptions(profile) };
  const HostConfig = {
    ...capabilities,
    NetworkMode: "none",
    PidsLimit: 16,
    Memory: chownMemory,
    MemorySwap: chownMemory,
    Ulimits: ulimits,
  };
  await using maker = await unstarted(docker, image, { ...chown, HostConfig });
  try {
    await engineWork(docker).run(undefined, () => maker.container.start());
    const { StatusCode } = (await maker.container.wait()) as { StatusCode: number };
    if (StatusCode !== 0) throw new Error(`chown ended with ${StatusCode}`);
    await engineWork(docker).run(undefined, () => maker.container.commit({ repo: "alidade/owned", tag, pause: false }));
  } catch (error) {
    if (isNotFound(error)) throw error;
    throw refused(
      `The workdir ${workdir} of the image could not be given to uid ${user} (${messageOf(error)}); a task with user: root needs no such change`,
    );
  }
}

function refused(message: string): AlidadeError {
  return new AlidadeError("sandbox_unavailable", message, { param: "workdir" });
}
