/** Sandboxes in containers without a network device, on any engine that speaks the Docker API. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import type Docker from "dockerode";
import { pack } from "tar-stream";
import { AlidadeError, asAlidadeError, messageOf } from "../errors.ts";
import { isBelow } from "../files/file-tree.ts";
import { hostId } from "../host/owner.ts";
import { type Belongings, type Reaped, type ReapOptions, reasonToRemove, removeInto } from "../host/reap.ts";
import { freeDisk, ownMemory } from "../host/room.ts";
import type { Environment } from "../schema/task.ts";
import { checkEnvironments, checkSpec } from "./check-spec.ts";
import { capLayer, closeRoot, isCapped } from "./docker/capped-layer.ts";
import { dockerClient, engineWork, forgetUnreachable, kernelFilter } from "./docker/client.ts";
import { commandEnv, containerOptions, etcFiles, labels, memoryPlaces, userId } from "./docker/container.ts";
import { localPid } from "./docker/container-door.ts";
import { DockerSandbox, removeContainer, removeVolumes } from "./docker/docker-sandbox.ts";
import { startEntrypoint, startsNothing } from "./docker/entrypoint.ts";
import { type ImageFacts, imageFacts } from "./docker/image.ts";
import { ownedImage } from "./docker/owned-image.ts";
import { seccompProfile } from "./docker/seccomp-profile.ts";
import { type DoorKind, doorInside, doorKinds } from "./door/door-kind.ts";
import { doorPack } from "./door/door-pack.ts";
import { checkOfTask, untilReady } from "./healthcheck.ts";
import { environmentImage } from "./images/environment-image.ts";
import { listImages } from "./images/list-images.ts";
import { type PreparedImage, prepareImages } from "./images/prepare-images.ts";
import { pruneImages } from "./images/prune-images.ts";
import type { Capabilities, ImageStore, PrepareOptions, Room, Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";

const capabilities: Capabilities = {
  isolation: "container",
  network: "none",
  images: true,
  remote: false,
  users: ["agent", "root"],
  snapshot: false,
};

export type DockerOptions = {
  /** How connections leave (`auto`: the fastest that works here). Default: `$ALIDADE_DOOR`, else `auto`. */
  door?: DoorKind;
  /** What holds sandboxes to their disk. Default: `overlay` where it works, else `watchdog`. */
  disk_limit?: "overlay" | "watchdog";
  /** Where works are read from. Default: the `overlay`'s own folders where this process can read them, else the `engine`. */
  layer?: "overlay" | "engine";
};

export function dockerBackend(options: DockerOptions = {}): SandboxBackend {
  return {
    name: "docker",
    title: "Docker",
    capabilities,
    unavailable,
    prepare,
    takes: ({ memory_mb, disk_mb }) => ({ memory_mb, disk_mb }),
    room,
    create: (spec, signal) => create(spec, options, signal),
    images,
    reap,
  };
}

/** An image that cannot be had fails its own rollouts, when they want it. */
async function prepare(environments: Environment[], options: PrepareOptions): Promise<void> {
  await imagesOf(environments, options);
}

async function imagesOf(environments: Environment[], options: PrepareOptions): Promise<PreparedImage[]> {
  checkEnvironments(environments, "Docker", capabilities);
  const docker = await dockerClient(options.signal);
  const images = await prepareImages(docker, environments, options);
  for (const [index, { image, workdir, platform }] of environments.entries()) {
    const asked = images[index]?.image ?? null;
    // What a build makes is known afterwards: it fails its own rollouts.
    if (image !== null && asked !== null) checkImage({ workdir, platform }, asked, await imageFacts(docker, asked));
  }
  return images;
}

const images: ImageStore = {
  prepare: imagesOf,
  list: async (signal) => listImages(await dockerClient(signal), signal),
  prune: async (options, signal) => pruneImages(await dockerClient(signal), options, signal),
};

export const docker = dockerBackend();

function doorFromEnvironment(): DoorKind {
  const value = process.env.ALIDADE_DOOR || "auto";
  const kind = doorKinds.find((name) => name === value);
  if (kind !== undefined) return kind;
  throw new AlidadeError("config_invalid", `ALIDADE_DOOR is "${value}"; it can be ${doorKinds.join(", ")}.`, { param: "ALIDADE_DOOR" });
}

async function unavailable(signal: AbortSignal): Promise<string | null> {
  try {
    await forgetUnreachable(signal);
    await dockerClient(signal);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** The engine's own word; of one in this machine or container also what this process may have. */
async function room(signal: AbortSignal): Promise<Room> {
  const info = (await (await dockerClient(signal)).info()) as { MemTotal?: number; Name?: string; DockerRootDir?: string };
  const { MemTotal = 0, Name, DockerRootDir = "" } = info;
  const engine = Math.floor(MemTotal / 1024 ** 2);
  if (Name === hostname()) {
    const memory_mb = Math.min(ownMemory(), engine || Number.POSITIVE_INFINITY);
    return { memory_mb, disk_mb: await freeDisk(DockerRootDir).catch(() => null) };
  }
  return { memory_mb: engine || null, disk_mb: null };
}

async function create(spec: SandboxSpec, options: DockerOptions, signal: AbortSignal): Promise<Sandbox> {
  checkSpec(spec);
  signal.throwIfAborted();
  const docker = await dockerClient(signal);
  const asked = await environmentImage(docker, spec, { signal });
  const image = await imageFacts(docker, asked);
  checkImage(spec, asked, image);
  const owned = await ownedImage(docker, image.id, spec.workdir, userId(spec), signal);
  const name = `alidade-${randomBytes(8).toString("hex")}`;
  const mounts = { [doorInside]: await doorPack(), ...etcMounts(image.etc) };
  const filter = await kernelFilter(docker);
  const seccomp = filter === "own" ? seccompProfile({ watches: spec.inotify === true }) : null;
  const request = containerOptions(name, spec, owned.image, { mounts, imageVolumes: image.volumes, seccomp }, await hostId());
  try {
    const started = await startContainer(docker, request, spec, options.disk_limit ?? "overlay", signal);
    const { container } = started;
    if (!owned.hasWorkdir) await makeFolder(container, spec.workdir, userId(spec));
    const closed = spec.writable !== "root" && started.pid !== null && (await closeRoot(started.pid, spec.workdir));
    const sandbox = new DockerSandbox({
      docker,
      id: container.id,
      name,
      spec,
      facts: {
        backend: "docker",
        isolation: "container",
        image: asked,
        image_digest: image.id,
        image_repo_digest: image.repo_digest,
        packages: image.packages,
        user: spec.user ?? "agent",
        writable: closed ? "workdir" : "root",
        disk_limit: started.disk_limit,
        seccomp: filter,
      },
      path: image.path,
      imageBytes: image.bytes,
      places: memoryPlaces(spec, image.volumes),
      door: options.door ?? doorFromEnvironment(),
      layer: options.layer ?? "overlay",
    });
    await begin(sandbox, docker, spec, image, signal);
    return sandbox;
  } catch (error) {
    // By name, for the engine may have made it although its answer never came.
    await removeContainer(docker.getContainer(name)).catch(() => {});
    await removeVolumes(docker, [`${labels.sandbox}=${name}`]).catch(() => {});
    if (signal.aborted) throw new AlidadeError("cancelled", "Making a sandbox was cancelled.", { cause: error });
    throw asAlidadeError(error, "sandbox_unavailable", `The Docker engine could not make a sandbox from ${asked}: `);
  }
}

/** Starts what the image starts by itself, and waits until it is ready. */
async function begin(sandbox: DockerSandbox, docker: Docker, spec: SandboxSpec, image: ImageFacts, signal: AbortSignal): Promise<void> {
  try {
    const where = { user: `${userId(spec)}:${userId(spec)}`, cwd: image.cwd, env: commandEnv(spec, image.path) };
    const starts = !startsNothing(image.entrypoint);
    const start = starts ? await startEntrypoint(docker, sandbox.id, image.entrypoint, where, signal) : null;
    if (spec.healthcheck !== "none") await untilReady(sandbox, checkOfTask(spec.healthcheck) ?? image.healthcheck, start, signal);
  } catch (error) {
    await sandbox[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
}

function etcMounts(folder: string): Record<string, string> {
  return Object.fromEntries(etcFiles.map((name) => [`/etc/${name}`, join(folder, name)]));
}

/** Throws `sandbox_unavailable` naming the field of the task that this image cannot meet. */
function checkImage({ workdir, platform }: Pick<SandboxSpec, "workdir" | "platform">, asked: string, image: ImageFacts): void {
  if (platform && platform !== image.platform)
    throw new AlidadeError(
      "sandbox_unavailable",
      `The image ${asked} is for ${image.platform}; environment.platform asks for ${platform}.`,
      {
        param: "platform",
      },
    );
  const volume = image.volumes.find((path) => isBelow(workdir, path));
  if (volume === undefined) return;
  throw new AlidadeError(
    "sandbox_unavailable",
    `environment.workdir ${workdir} lies in the VOLUME ${volume} of the image ${asked}, which hides the image's files: build the image without it.`,
    { param: "workdir" },
  );
}

type StartedContainer = { container: Docker.Container; pid: number | null; disk_limit: "overlay" | "watchdog" };

async function startContainer(
  docker: Docker,
  request: Docker.ContainerCreateOptions,
  { limits }: SandboxSpec,
  wanted: StartedContainer["disk_limit"],
  signal: AbortSignal,
): Promise<StartedContainer> {
  const container = await engineWork.run(signal, () => docker.createContainer(request));
  const capped = wanted === "overlay" && (await capLayer(container, limits.disk_mb));
  await engineWork.run(signal, () => container.start());
  signal.throwIfAborted();
  const pid = await localPid(docker, container.id);
  const holds = capped && pid !== null && (await isCapped(pid, limits.disk_mb));
  return { container, pid, disk_limit: holds ? "overlay" : "watchdog" };
}

async function makeFolder(container: Docker.Container, path: string, user: number): Promise<void> {
  const archive = pack();
  archive.entry({ name: `${path.slice(1)}/`, type: "directory", mode: 0o755, uid: user, gid: user });
  archive.finalize();
  await container.putArchive(Readable.from(archive), { path: "/" });
}

/** Containers of dead owners or with an expired lease; with `all`, every container that this host made. */
async function reap(options: ReapOptions, signal: AbortSignal): Promise<Reaped> {
  const client = await dockerClient(signal);
  const host = await hostId();
  const containers = await client.listContainers({ all: true, filters: { label: [labels.run] }, abortSignal: signal });
  const reaped: Reaped = { removed: [], failed: [] };
  for (const { Id, Labels, Names, Created } of containers) {
    signal.throwIfAborted();
    const reason = await reasonToRemove({ ...belongingsOf(Labels), made: Created * 1000 }, host, options);
    if (reason === null) continue;
    const what = `container ${(Names[0] ?? Id).replace(/^\//, "")} of run ${Labels[labels.run]} (${reason})`;
    await removeInto(reaped, what, options, () => removeContainer(client.getContainer(Id)));
  }
  // Another process removed this container meanwhile.
  const { removed, failed } = await removeVolumes(
    client,
    [labels.run],
    async (found) => (await reasonToRemove(belongingsOf(found), host, options)) !== null,
    options.only_look,
  ).catch((error: unknown) => ({ removed: [], failed: [`volumes: ${messageOf(error)}`] }));
  const runs = new Set(removed.map((found) => found[labels.run]));
  for (const run of runs) reaped.removed.push(`${removed.filter((found) => found[labels.run] === run).length} volumes of run ${run}`);
  reaped.failed.push(...failed);
  return reaped;
}

function belongingsOf(found: Record<string, string>): Belongings {
  return {
    run_id: found[labels.run] ?? "",
    owner: found[labels.owner] ?? "",
    host: found[labels.host] ?? "",
    lease: Number(found[labels.lease]),
  };
}
