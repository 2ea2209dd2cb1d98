/** Sandboxes in containers without a network device, on any engine that speaks the Docker API. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError, messageOf } from "../errors.ts";
import { isBelow } from "../files/file-tree.ts";
import { hostId } from "../host/owner.ts";
import { type Reaped, type ReapOptions, reasonToRemove, removeInto } from "../host/reap.ts";
import { freeDisk, ownMemory } from "../host/room.ts";
import type { Environment } from "../schema/task.ts";
import { checkEnvironments, checkSpec } from "./check-spec.ts";
import { belongingsOf, commandEnv, containerOptions, etcFiles, labels, memoryPlaces, userId } from "./docker/container.ts";
import { DockerSandbox } from "./docker/docker-sandbox.ts";
import { engineTraits } from "./docker/engine-traits.ts";
import { startEntrypoint, startsNothing } from "./docker/entrypoint.ts";
import { closeRoot } from "./docker/layer/capped-layer.ts";
import { overlayMounts } from "./docker/layer/overlay-mounts.ts";
import { profileFor } from "./docker/profile-for.ts";
import { removeContainer, removeVolumes } from "./docker/remove.ts";
import { makeFolder, startContainer } from "./docker/start-container.ts";
import { type DoorKind, doorInside, doorKinds } from "./door/door-kind.ts";
import { doorPack } from "./door/door-pack.ts";
import { type DockerEngine, DockerEngines, type EnginePlace } from "./engines/docker-engines.ts";
import type { EngineAddress } from "./engines/engine-connection.ts";
import { mountsAt } from "./engines/mounts.ts";
import { spreadImages } from "./engines/spread-images.ts";
import { checkOfTask, untilReady } from "./healthcheck.ts";
import { environmentImage } from "./images/environment-image.ts";
import { type ImageFacts, imageFacts } from "./images/image-facts.ts";
import { imageWords } from "./images/image-words.ts";
import { listImages } from "./images/list-images.ts";
import { ownedImage } from "./images/owned-image.ts";
import { type PreparedImage, prepareImages } from "./images/prepare-images.ts";
import { type Pruned, type PruneOptions, pruneImages } from "./images/prune-images.ts";
import { originOf, removeSnapshot, restorePlaces } from "./images/snapshot.ts";
import type { Capabilities, PrepareOptions, Room, Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";
import { etcWithNames, namesOf } from "./services/etc-with-names.ts";
import type { ServicePlace } from "./services/service-container.ts";
import { startServices } from "./services/start-services.ts";
import { takesWithServices } from "./services/takes-with-services.ts";

const capabilities: Capabilities = {
  isolation: "container",
  network: "none",
  images: true,
  remote: false,
  users: ["agent", "root"],
  snapshot: true,
  services: true,
};

export type DockerOptions = {
  /** Default: those of `$ALIDADE_DOCKER_ENGINES`, else the one of this machine. */
  engines?: readonly EngineAddress[];
  /** How long one of `engines` may be silent until what is under way at it is given up. Default: 30 s. */
  silence_ms?: number;
  /** How connections leave (`auto`: the fastest that works here). Default: `$ALIDADE_DOOR`, else `auto`. */
  door?: DoorKind;
  /** What holds sandboxes to their disk. Default: `overlay` where it works, else `watchdog`. */
  disk_limit?: "overlay" | "watchdog";
  /** Where works are read from. Default: the `overlay`'s own folders where this process can read them, else the `engine`. */
  layer?: "overlay" | "engine";
};

export function dockerBackend(options: DockerOptions = {}): SandboxBackend {
  // Asked for at the first use, for a variable that says what is no address must not fail what needs no engine.
  let known: DockerEngines | null = null;
  const pool = () => {
    known ??= new DockerEngines(options.engines ?? enginesFromEnvironment(), options.silence_ms);
    return known;
  };
  return {
    name: "docker",
    title: "Docker",
    capabilities,
    unavailable: (signal) => unavailable(pool, signal),
    prepare: async (environments, more) => {
      await imagesOf(pool(), environments, more);
    },
    takes: takesWithServices,
    room: async (signal) => sumOfRooms(await Promise.all((await pool().alive(signal)).map(({ docker }) => room(docker)))),
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

function doorFromEnvironment(): DoorKind {
  const value = process.env.ALIDADE_DOOR || "auto";
  const kind = doorKinds.find((name) => name === value);
  if (kind !== undefined) return kind;
  throw new AlidadeError("config_invalid", `ALIDADE_DOOR is "${value}"; it can be ${doorKinds.join(", ")}.`, { param: "ALIDADE_DOOR" });
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
    return await createAt(engine, spec, options, signal);
  } catch (error) {
    engine.release();
    throw error;
  }
}

async function createAt(engine: EnginePlace, spec: SandboxSpec, options: DockerOptions, signal: AbortSignal): Promise<Sandbox> {
  const { docker } = engine;
  const asked = spec.snapshot ?? (await environmentImage(docker, spec, { signal }));
  const image = await imageFacts(docker, spec.snapshot === undefined ? asked : await originOf(docker, spec.snapshot));
  checkImage(spec, asked, image);
  const owned =
    spec.snapshot === undefined
      ? await ownedImage(docker, image.id, spec.workdir, userId(spec), signal)
      : { image: spec.snapshot, hasWorkdir: true };
  const places = memoryPlaces(spec, image.volumes);
  const name = `alidade-${randomBytes(8).toString("hex")}`;
  try {
    const seccomp = await profileFor(docker, owned.image, { watches: spec.inotify === true }, signal);
    const folders = { ...spec.mounts, [doorInside]: await doorPack(cpuOf(image.platform)) };
    const etc = await etcWithNames(image.etc, spec.services);
    const mounts = await mountsAt(docker, owned.image, { folders, files: { folder: etc, names: etcNames } }, signal);
    const request = containerOptions(name, spec, owned.image, { mounts, imageVolumes: image.volumes, seccomp }, await hostId());
    const missing = owned.hasWorkdir ? null : { path: spec.workdir, user: userId(spec) };
    const started = await startContainer(docker, request, spec.limits, options.disk_limit ?? "overlay", missing, signal);
    const { container } = started;
    if (missing !== null && !started.hasFolder) await makeFolder(container, spec.workdir, userId(spec));
    if (spec.snapshot !== undefined) await restorePlaces(docker, spec.snapshot, container, { places, user: userId(spec) }, signal);
    const { faithfulArchives, passesReadOnly } = await engineTraits(docker);
    if (!faithfulArchives) await assertReadable(docker, container, options.layer);
    const canClose = spec.writable !== "root" && passesReadOnly;
    const closed = canClose && started.pid !== null && (await closeRoot(started.pid, spec.workdir));
    const sandbox = new DockerSandbox({
      docker,
      id: container.id,
      name,
      spec,
      facts: {
        backend: "docker",
        isolation: "container",
        image: asked,
        image_digest: spec.snapshot === undefined ? image.id : (await docker.getImage(spec.snapshot).inspect()).Id,
        image_repo_digest: image.repo_digest,
        packages: image.packages,
        user: spec.user ?? "agent",
        writable: closed ? "workdir" : "root",
        disk_limit: started.disk_limit,
        seccomp: seccomp === null ? "none" : "own",
        engine: engine.name,
      },
      path: image.path,
      imageBytes: image.bytes,
      places,
      origin: image.id,
      door: options.door ?? doorFromEnvironment(),
      layer: options.layer ?? "overlay",
      onEnd: engine.release,
    });
    const beside = {
      docker,
      sandbox: { id: container.id, name },
      labels: request.Labels ?? {},
      etc,
      seccomp,
      disk_limit: options.disk_limit ?? "overlay",
      init_seconds: spec.limits.init_seconds,
    };
    await begin(sandbox, beside, spec, image, signal);
    return sandbox;
  } catch (error) {
    // By name, for the engine may have made it although its answer never came.
    await removeContainer(docker.getContainer(name)).catch(() => {});
    await removeVolumes(docker, [`${labels.sandbox}=${name}`]).catch(() => {});
    if (signal.aborted) throw new AlidadeError("cancelled", "Making a sandbox was cancelled.", { cause: error });
    throw asAlidadeError(error, "sandbox_unavailable", `The Docker engine could not make a sandbox from ${asked}: `);
  }
}

/** Before anything runs there: by an archive of such an engine no work can be taken. */
async function assertReadable(docker: Docker, container: Docker.Container, layer: DockerOptions["layer"]): Promise<void> {
  using mounts = layer === "engine" ? null : await overlayMounts(docker, container);
  if (mounts === null) throw new Error("the folders of its layer cannot be read, and Podman's archives lose links and owners");
}

/** Starts the services beside it, then what the image starts by itself, and waits until all are ready. */
async function begin(
  sandbox: DockerSandbox,
  beside: ServicePlace,
  spec: SandboxSpec,
  image: ImageFacts,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (spec.services) sandbox.hold(await startServices(beside, spec.services, signal), namesOf(spec.services));
    const where = { user: `${userId(spec)}:${userId(spec)}`, cwd: image.cwd, env: commandEnv(spec, image.path) };
    const starts = !startsNothing(image.entrypoint);
    const start = starts ? await startEntrypoint(beside.docker, sandbox.id, image.entrypoint, where, signal) : null;
    if (spec.healthcheck !== "none") await untilReady(sandbox, checkOfTask(spec.healthcheck) ?? image.healthcheck, start, signal);
  } catch (error) {
    await sandbox[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
}

const etcNames = Object.fromEntries(etcFiles.map((name) => [`/etc/${name}`, name]));

/** An engine's word for a CPU in Node's words. */
function cpuOf(platform: string): string {
  return platform === "linux/amd64" ? "x64" : platform.replace(/^linux\//, "");
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
