/** Sandboxes in containers without a network device, on any engine that speaks the Docker API. */
import { hostname } from "node:os";
import type Docker from "dockerode";
import { messageOf } from "../base/errors.ts";
import { hostId } from "../base/host/owner.ts";
import { type Reaped, type ReapOptions, reasonToRemove, removeInto } from "../base/host/reap.ts";
import { freeDisk, ownMemory } from "../base/host/room.ts";
import type { EngineAddress } from "../base/schema/container-engine.ts";
import type { Environment } from "../base/schema/task.ts";
import { checkEnvironments, checkSpec } from "./check-spec.ts";
import { belongingsOf, labels } from "./docker/container.ts";
import type { CreateOptions } from "./docker/create-sandbox.ts";
import { type DockerEngine, DockerEngines } from "./docker/hosts/docker-engines.ts";
import { spreadImages } from "./docker/hosts/spread-images.ts";
import { checkImage } from "./docker/images/check-image.ts";
import { imageFacts } from "./docker/images/image-facts.ts";
import { imageWords } from "./docker/images/image-words.ts";
import { listImages } from "./docker/images/list-images.ts";
import { prepareImages } from "./docker/images/prepare-images.ts";
import { pruneImages } from "./docker/images/prune-images.ts";
import { removeSnapshot } from "./docker/images/snapshot.ts";
import { removeContainer, removeVolumes } from "./docker/remove.ts";
import { doorFromEnvironment } from "./door/door-kind.ts";
import type { PreparedImage, Pruned, PruneOptions } from "./image-store.ts";
import type { Capabilities, PrepareOptions, Room, Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";
import { takesWithServices } from "./takes-with-services.ts";

const capabilities: Capabilities = {
  isolation: "container",
  network: "none",
  images: true,
  builds: true,
  remote: false,
  users: ["agent", "root"],
  snapshot: true,
  services: true,
  keepsProcesses: true,
};

export type DockerOptions = CreateOptions & {
  /** Default: those of `$ALIDADE_DOCKER_ENGINES`, else the one of this machine. */
  engines?: readonly EngineAddress[];
  /** How long one of `engines` may be silent until what is under way at it is given up. Default: 30 s. */
  silence_ms?: number;
};

export function dockerBackend(options: DockerOptions = {}): SandboxBackend {
  // Asked for at the first use, for a variable that says what is no address must not fail what needs no engine.
  let known: DockerEngines | null = null;
  const pool = () => {
    known ??= new DockerEngines(options.engines ?? enginesFromEnvironment(), options.silence_ms);
    return known;
  };
  /** All engines are on this machine, which can enter their containers. False until they were asked. */
  let areNear = false;
  return {
    name: "docker",
    title: "Docker",
    capabilities,
    at: (engines) => dockerBackend({ ...options, engines }),
    unavailable: (signal) => unavailable(pool, signal),
    prepare: async (environments, more) => {
      await imagesOf(pool(), environments, more);
    },
    takes: (limits, services) => takesWithServices(limits, services, areNear),
    room: async (signal) => {
      const engines = await pool().alive(signal);
      areNear = pool().silent.length === 0 && (await Promise.all(engines.map((one) => isNear(one, options)))).every(Boolean);
      return sumOfRooms(await Promise.all(engines.map(({ docker }) => room(docker))));
    },
    create: (spec, signal) => create(pool(), spec, options, signal),
    images: {
      prepare: (environments, more) => imagesOf(pool(), environments, more),
      list: async (signal) => (await Promise.all((await pool().alive(signal)).map(({ docker }) => listImages(docker, signal)))).flat(),
      prune: (more, signal) => prune(pool(), more, signal),
      words: (image, signal) => wordsOf(pool(), image, signal),
    },
    removeSnapshot: (id, signal) => removeFromAll(pool(), id, signal),
    reap: (more, signal) => reap(pool(), more, signal),
  };
}

/** An image that cannot be had fails its own rollouts, when they want it. */
async function imagesOf(pool: DockerEngines, environments: Environment[], options: PrepareOptions): Promise<PreparedImage[]> {
  checkEnvironments(environments, "Docker", capabilities);
  const [first, ...others] = (await pool.alive(options.signal)) as [DockerEngine, ...DockerEngine[]];
  for (const why of pool.silent) options.progress?.(`The engine ${why}; it gets no sandboxes until it answers`);
  const images = await prepareImages(first.docker, environments, options);
  for (const [index, { image, workdir, platform }] of environments.entries()) {
    const asked = images[index]?.image ?? null;
    // What a build makes is known afterwards: it fails its own rollouts.
    if (image !== null && asked !== null) checkImage({ workdir, platform }, asked, await imageFacts(first.docker, asked));
  }
  await spreadImages(pool, first, others, images, options);
  return images;
}

export const docker = dockerBackend();

/** Addresses with commas between them. */
function enginesFromEnvironment(): EngineAddress[] {
  const words = (process.env.ALIDADE_DOCKER_ENGINES ?? "").split(",").map((word) => word.trim());
  return words.filter((word) => word !== "").map((host) => ({ host }));
}

async function unavailable(pool: () => DockerEngines, signal: AbortSignal): Promise<string | null> {
  try {
    await pool().askAgain(signal);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    return messageOf(error);
  }
}

/** Another machine may have this one's name, so only an engine behind a socket of this machine counts. */
async function isNear({ name, docker }: DockerEngine, { door = doorFromEnvironment() }: DockerOptions): Promise<boolean> {
  const address = name ?? process.env.DOCKER_HOST ?? "";
  if (door === "forwarder" || !/^$|^unix:/.test(address)) return false;
  const { mayEnter } = await import("./door/namespace-door.ts");
  return mayEnter(((await docker.info()) as { Name?: string }).Name);
}

/** The engine's own word; of one in this machine or container also what this process may have. */
async function room(docker: Docker): Promise<Room> {
  const info = (await docker.info()) as { MemTotal?: number; Name?: string; DockerRootDir?: string };
  const { MemTotal = 0, Name, DockerRootDir = "" } = info;
  const engine = Math.floor(MemTotal / 1024 ** 2);
  if (Name === hostname()) {
    const memory_mb = Math.min(ownMemory(), engine || Number.POSITIVE_INFINITY);
    return { memory_mb, disk_mb: await freeDisk(DockerRootDir).catch(() => null) };
  }
  return { memory_mb: engine || null, disk_mb: null };
}

/** Unknown where one of them is. */
function sumOfRooms(rooms: Room[]): Room {
  const sum = (values: (number | null)[]) => values.reduce((all, one) => (all === null || one === null ? null : all + one), 0);
  return { memory_mb: sum(rooms.map(({ memory_mb }) => memory_mb)), disk_mb: sum(rooms.map(({ disk_mb }) => disk_mb)) };
}

async function create(pool: DockerEngines, spec: SandboxSpec, options: DockerOptions, signal: AbortSignal): Promise<Sandbox> {
  checkSpec(spec);
  signal.throwIfAborted();
  const { memory_mb } = takesWithServices(spec.limits, spec.services);
  const engine = await pool.place({ ...spec, memory_mb }, signal);
  try {
    const { createSandbox } = await import("./docker/create-sandbox.ts");
    return await createSandbox(engine, spec, options, signal);
  } catch (error) {
    engine.release();
    throw error;
  }
}

/** A snapshot from which a sandbox was made at another engine is there too. */
async function removeFromAll(pool: DockerEngines, id: string, signal: AbortSignal): Promise<void> {
  const removals = (await pool.alive(signal)).map(({ docker }) => removeSnapshot(docker, id));
  const results = await Promise.allSettled(removals);
  const [failure] = results.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  if (results.every(({ status }) => status === "rejected")) throw failure;
}

/** Each engine by itself. */
async function prune(pool: DockerEngines, options: PruneOptions, signal: AbortSignal): Promise<Pruned> {
  const all: Pruned = { removed: [], failed: [], bytes_left: 0, images_left: 0 };
  for (const { docker } of await pool.alive(signal)) {
    const one = await pruneImages(docker, options, signal);
    all.removed.push(...one.removed);
    all.failed.push(...one.failed);
    all.bytes_left += one.bytes_left;
    all.images_left += one.images_left;
  }
  return all;
}

/** The first engine that has the image tells. */
async function wordsOf(pool: DockerEngines, image: string, signal: AbortSignal): Promise<string[]> {
  return Promise.any((await pool.alive(signal)).map(({ docker }) => imageWords(docker, image)));
}

/** Containers of dead owners or with an expired lease; with `all`, every container that this host made. */
async function reap(pool: DockerEngines, options: ReapOptions, signal: AbortSignal): Promise<Reaped> {
  const reaped: Reaped = { removed: [], failed: [] };
  for (const { docker } of await pool.alive(signal)) await reapAt(docker, reaped, options, signal);
  reaped.failed.push(...pool.silent.map((why) => `the engine ${why}`));
  return reaped;
}

async function reapAt(client: Docker, reaped: Reaped, options: ReapOptions, signal: AbortSignal): Promise<void> {
  const host = await hostId();
  const containers = await client.listContainers({ all: true, filters: { label: [labels.run] }, abortSignal: signal });
  // A service before its sandbox, whose network it is in: Podman removes none that another one needs.
  const inOrder = containers.toSorted((a, b) => (b.Names[0] ?? "").length - (a.Names[0] ?? "").length);
  for (const { Id, Labels, Names, Created } of inOrder) {
    signal.throwIfAborted();
    const reason = await reasonToRemove({ ...belongingsOf(Labels), made: Created * 1000 }, host, options);
    if (reason === null) continue;
    const what = `container ${(Names[0] ?? Id).replace(/^\//, "")} of run ${Labels[labels.run]} (${reason})`;
    await removeInto(reaped, what, options, async () => void (await removeContainer(client.getContainer(Id))));
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
}
