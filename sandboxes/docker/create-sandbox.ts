/** Makes one sandbox, from its image to the moment at which all that it starts is ready. */
import { randomBytes } from "node:crypto";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { hostId } from "../../base/host/owner.ts";
import { reachableServices, type Services, servicesApart } from "../../base/schema/environment/services.ts";
import { type DoorKind, doorFromEnvironment, doorInside } from "../door/door-kind.ts";
import { doorPack } from "../door/door-pack.ts";
import { checkOfTask, untilReady } from "../healthcheck.ts";
import type { Sandbox, SandboxFacts, SandboxSpec } from "../sandbox.ts";
import { startEntrypoint, startsNothing } from "./confined/entrypoint.ts";
import { assertOwnHosts, ownEtcNames, putOwnEtc } from "./confined/own-etc.ts";
import { profileFor } from "./confined/profile-for.ts";
import { commandEnv, containerOptions, etcFiles, labels, type MemoryPlace, memoryPlaces, userId } from "./container.ts";
import { DockerSandbox } from "./docker-sandbox.ts";
import { engineTraits } from "./engine-traits.ts";
import type { EnginePlace } from "./hosts/docker-engines.ts";
import { mountsAt } from "./hosts/mounts.ts";
import { checkImage } from "./images/check-image.ts";
import { environmentImage } from "./images/environment-image.ts";
import { imageAt } from "./images/image-at.ts";
import { cpuOf, type ImageFacts, imageFacts } from "./images/image-facts.ts";
import { type OwnedImage, ownedImage } from "./images/owned-image.ts";
import { originOf, restorePlaces } from "./images/snapshot.ts";
import { closeRoot } from "./layer/capped-layer.ts";
import { overlayMounts } from "./layer/overlay-mounts.ts";
import { removeContainer, removeVolumes } from "./remove.ts";
import { etcWithNames, namesInSandbox, namesOf } from "./services/etc-with-names.ts";
import { type NamespaceSource, namespaceName, openNamespace } from "./services/open-namespace.ts";
import type { ServiceNetwork, ServicePlace } from "./services/service-container.ts";
import { startServices } from "./services/start-services.ts";
import { makeFolder, type StartedContainer, startContainer } from "./start-container.ts";

export type CreateOptions = {
  /** How connections leave (`auto`: the fastest that works here). Default: `$ALIDADE_DOOR`, else `auto`. */
  door?: DoorKind;
  /** What holds sandboxes to their disk. Default: `overlay` where it works, else `watchdog`. */
  disk_limit?: "overlay" | "watchdog";
  /** Where works are read from. Default: the `overlay`'s own folders where this process can read them, else the `engine`. */
  layer?: "overlay" | "engine";
};

type ContainerSource = {
  /** The image that was asked for, as records name it. */
  asked: string;
  /** What is known of it; of a snapshot's first image. */
  image: ImageFacts;
  /** The one that its container is made from. */
  owned: OwnedImage;
  places: MemoryPlace[];
};

/** `beside`: what its services share with it. `isNear`: this machine can enter the containers' network namespaces. */
type Begun = StartedContainer & { beside: ServicePlace & { namespace: NamespaceSource; isNear: boolean } };

/** Throws `sandbox_unavailable` for what the engine or the image cannot do, `cancelled`, and the errors of images and services. */
export async function createSandbox(engine: EnginePlace, spec: SandboxSpec, options: CreateOptions, signal: AbortSignal): Promise<Sandbox> {
  const { docker } = engine;
  const source = await sourceOf(docker, spec, signal);
  const name = `alidade-${randomBytes(8).toString("hex")}`;
  try {
    const begun = await begin(docker, name, spec, source, options, signal);
    const { places } = source;
    if (spec.snapshot !== undefined) await restorePlaces(docker, spec.snapshot, begun.container, { places, user: userId(spec) }, signal);
    await assertReadable(docker, begun.container, options.layer);
    const facts = await factsOf(engine, spec, source, begun, await closeRest(docker, begun, spec));
    const sandbox = toSandbox(engine, spec, source, begun, facts, options);
    await bringUp(sandbox, begun.beside, spec, source.image, signal);
    return sandbox;
  } catch (error) {
    // By name, for the engine may have made it although its answer never came.
    for (const one of [namespaceName(name), name]) await removeContainer(docker.getContainer(one)).catch(() => {});
    await removeVolumes(docker, [`${labels.sandbox}=${name}`]).catch(() => {});
    if (signal.aborted) throw new AlidadeError("cancelled", "Making a sandbox was cancelled.", { cause: error });
    throw asAlidadeError(error, "sandbox_unavailable", `The Docker engine could not make a sandbox from ${source.asked}: `);
  }
}

async function sourceOf(docker: Docker, spec: SandboxSpec, signal: AbortSignal): Promise<ContainerSource> {
  const { snapshot, workdir } = spec;
  const asked = snapshot ?? (await environmentImage(docker, spec, { signal }));
  const image = await imageFacts(docker, snapshot === undefined ? asked : await originOf(docker, snapshot));
  checkImage(spec, asked, image);
  const owned =
    snapshot === undefined ? await ownedImage(docker, image.id, workdir, userId(spec), signal) : { image: snapshot, hasWorkdir: true };
  return { asked, image, owned, places: memoryPlaces(spec, image.volumes) };
}

/** Makes and starts its container, with its workdir. */
async function begin(
  docker: Docker,
  name: string,
  spec: SandboxSpec,
  { image, owned }: ContainerSource,
  { disk_limit = "overlay", door = doorFromEnvironment() }: CreateOptions,
  signal: AbortSignal,
): Promise<Begun> {
  const seccomp = await profileFor(docker, owned.image, { watches: spec.inotify === true }, signal);
  const arch = cpuOf(image.platform);
  const folders = { ...spec.mounts, [doorInside]: await doorPack(arch) };
  const etc = await etcWithNames(image.etc, namesInSandbox(spec.services));
  const inLayer = await ownEtcNames(docker, spec);
  const names = namesMounted(inLayer);
  const mounts = await mountsAt(docker, owned.image, { folders, files: { folder: etc, names } }, signal);
  const request = containerOptions(name, spec, owned.image, { mounts, imageVolumes: image.volumes, seccomp }, await hostId());
  const missing = owned.hasWorkdir ? null : { path: spec.workdir, user: userId(spec) };
  const before = inLayer.length > 0 ? (made: Docker.Container) => putOwnEtc(made, etc, inLayer) : undefined;
  const started = await startContainer(docker, request, spec.limits, disk_limit, missing, signal, before);
  const { container } = started;
  if (inLayer.length > 0) await assertOwnHosts(container);
  if (missing !== null && !started.hasFolder) await makeFolder(container, missing.path, missing.user);
  const { init_seconds } = spec.limits;
  const ownLabels = request.Labels ?? {};
  const own = { container: container.id, etc };
  // Until a namespace is opened for those apart.
  const networks = { agent: own, apart: own };
  const place = { docker, sandbox: name, networks, labels: ownLabels, seccomp, disk_limit, init_seconds, display: spec.display ?? null };
  const isNear = started.pid !== null && door !== "forwarder";
  return { ...started, beside: { ...place, isNear, namespace: { image: owned.image, arch, etc: image.etc } } };
}

/** What is mounted read-only below /etc: path inside -> name. */
function namesMounted(inLayer: readonly string[]): Record<string, string> {
  const names = etcFiles.filter((name) => !inLayer.includes(name));
  return Object.fromEntries(names.map((name) => [`/etc/${name}`, name]));
}

/** Before anything runs there: by an archive of such an engine no work can be taken. */
async function assertReadable(docker: Docker, container: Docker.Container, layer: CreateOptions["layer"]): Promise<void> {
  if ((await engineTraits(docker)).faithfulArchives) return;
  using mounts = layer === "engine" ? null : await overlayMounts(docker, container);
  if (mounts === null) throw new Error("the folders of its layer cannot be read, and Podman's archives lose links and owners");
}

/** What is writable from now on: the workdir alone, where this machine and its engine can close the rest. */
async function closeRest(docker: Docker, { pid }: Begun, spec: SandboxSpec): Promise<"workdir" | "root"> {
  const { passesReadOnly } = await engineTraits(docker);
  const canClose = spec.writable !== "root" && passesReadOnly;
  return canClose && pid !== null && (await closeRoot(pid, spec.workdir)) ? "workdir" : "root";
}

async function factsOf(
  { docker, name }: EnginePlace,
  spec: SandboxSpec,
  { asked, image }: ContainerSource,
  { disk_limit, beside }: Begun,
  writable: SandboxFacts["writable"],
): Promise<SandboxFacts> {
  return {
    backend: "docker",
    isolation: "container",
    image: asked,
    image_digest: spec.snapshot === undefined ? image.id : (await imageAt(docker, spec.snapshot).inspect()).Id,
    image_repo_digest: image.repo_digest,
    packages: image.packages,
    user: spec.user ?? "agent",
    writable,
    disk_limit,
    seccomp: beside.seccomp === null ? "none" : "own",
    engine: name,
  };
}

function toSandbox(
  { docker, release }: EnginePlace,
  spec: SandboxSpec,
  { image, places }: ContainerSource,
  { container, beside }: Begun,
  facts: SandboxFacts,
  options: CreateOptions,
): DockerSandbox {
  return new DockerSandbox({
    docker,
    id: container.id,
    name: beside.sandbox,
    spec,
    facts,
    path: image.path,
    imageBytes: image.bytes,
    places,
    origin: image.id,
    door: options.door ?? doorFromEnvironment(),
    layer: options.layer ?? "overlay",
    onEnd: release,
  });
}

/** Starts the services beside it, then what the image starts by itself, and waits until all are ready. */
async function bringUp(
  sandbox: DockerSandbox,
  beside: Begun["beside"],
  spec: SandboxSpec,
  image: ImageFacts,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (spec.services) await startBeside(sandbox, beside, spec.services, signal);
    const where = { user: `${userId(spec)}:${userId(spec)}`, cwd: image.cwd, env: commandEnv(spec, image.path) };
    const starts = !startsNothing(image.entrypoint);
    const start = starts ? await startEntrypoint(beside.docker, sandbox.id, image.entrypoint, where, signal) : null;
    if (spec.healthcheck !== "none") await untilReady(sandbox, checkOfTask(spec.healthcheck) ?? image.healthcheck, start, signal);
  } catch (error) {
    await sandbox[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
}

/** The services start side by side with the namespace of those apart, whose exposed ports are then let in. */
async function startBeside(sandbox: DockerSandbox, beside: Begun["beside"], services: Services, signal: AbortSignal): Promise<void> {
  const apart = servicesApart(services);
  await using scope = new AsyncDisposableStack();
  const own = await namespaceOf(beside, apart, scope, signal);
  const running = scope.use(await startServices({ ...beside, networks: { ...beside.networks, apart: own } }, services, signal));
  const release = scope.move();
  sandbox.hold({ ...running, [Symbol.asyncDispose]: () => release.disposeAsync() }, namesOf(reachableServices(services)));
  for (const [name, { expose }] of Object.entries(apart)) for (const port of expose) await sandbox.expose(name, port);
}

/** Opens the namespace of the services apart. A lone service uses its own container's, if this machine can enter it. */
async function namespaceOf(
  beside: Begun["beside"],
  apart: Services,
  scope: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<ServiceNetwork> {
  const [name, ...others] = Object.keys(apart);
  if (name === undefined) return beside.networks.apart;
  if (others.length > 0 || !beside.isNear) return scope.use(await openNamespace(beside, apart, beside.namespace, signal));
  return { container: `${beside.sandbox}-${name}`, etc: await etcWithNames(beside.namespace.etc, namesOf(apart)) };
}
