/** Sandboxes in containers without a network device, on any engine that speaks the Docker API. */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type Docker from "dockerode";
import { extract, pack } from "tar-stream";
import { AlidadeError, asAlidadeError, messageOf } from "../errors.ts";
import { hostId } from "../host/owner.ts";
import { type Belongings, type Reaped, type ReapOptions, reasonToRemove, removeInto } from "../host/reap.ts";
import { ownMemory } from "../host/room.ts";
import type { Environment } from "../schema/task.ts";
import { checkSpec } from "./check-spec.ts";
import { baseImage, ensureBaseImage } from "./docker/base-image.ts";
import { dockerClient, engineWork, forgetUnreachable, statusOf } from "./docker/client.ts";
import { agentId, containerMegabytes, containerOptions, labels, writablePlaces } from "./docker/container.ts";
import { DockerSandbox, removeContainer, removeVolumes } from "./docker/docker-sandbox.ts";
import { imageFacts, unstarted } from "./docker/image.ts";
import { type DoorKind, doorInside, doorKinds } from "./door/door-kind.ts";
import { doorPack } from "./door/door-pack.ts";
import type { PrepareOptions, Room, Sandbox, SandboxBackend, SandboxSpec } from "./sandbox.ts";

export const docker = dockerBackend();

/** `door`: how connections leave (`auto`: the fastest that works here); default is `$ALIDADE_DOOR`, else `auto`. */
export function dockerBackend(options: { door?: DoorKind } = {}): SandboxBackend {
  return {
    name: "docker",
    title: "Docker",
    capabilities: { isolation: "container", network: "none", images: true, remote: false, snapshot: false },
    unavailable,
    prepare,
    // An image's own volumes, 64 MiB each, are known only after the image was inspected.
    takes: (limits) => ({ memory_mb: containerMegabytes(limits, writablePlaces("/work", limits.disk_mb)), disk_mb: 0 }),
    room,
    create: (spec, signal) => create(spec, options.door ?? doorFromEnvironment(), signal),
    reap,
  };
}

async function prepare(environments: Environment[], options: PrepareOptions): Promise<void> {
  if (environments.some(({ image }) => image === null)) await ensureBaseImage(options);
}

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
  const { MemTotal = 0, Name } = (await (await dockerClient(signal)).info()) as { MemTotal?: number; Name?: string };
  const engine = Math.floor(MemTotal / 1024 ** 2);
  if (Name === hostname()) return { memory_mb: Math.min(ownMemory(), engine || Number.POSITIVE_INFINITY), disk_mb: null };
  return { memory_mb: engine || null, disk_mb: null };
}

async function create(spec: SandboxSpec, door: DoorKind, signal: AbortSignal): Promise<Sandbox> {
  checkSpec(spec);
  signal.throwIfAborted();
  const client = await dockerClient(signal);
  const image = spec.image ?? (await ensureBaseImage({ signal }));
  const facts = await imageFacts(client, image);
  const mounts = {
    [doorInside]: await doorPack(),
    "/etc/passwd": join(facts.etc, "passwd"),
    "/etc/group": join(facts.etc, "group"),
    "/etc/hosts": join(facts.etc, "hosts"),
  };
  const name = `alidade-${randomBytes(8).toString("hex")}`;
  const options = containerOptions(name, spec, facts.id, { mounts, imageVolumes: facts.volumes }, await hostId());
  try {
    const id = await startContainer(client, options, signal);
    const writable = writablePlaces(spec.workdir, spec.limits.disk_mb, facts.volumes);
    const sandbox = new DockerSandbox({
      docker: client,
      id,
      name,
      spec,
      facts: {
        backend: "docker",
        isolation: "container",
        image: spec.image ?? baseImage,
        image_digest: facts.id,
        packages: facts.packages,
      },
      path: facts.path,
      writable,
      door,
    });
    await seedWorkdir(client, facts.id, id, spec.workdir, signal);
    return sandbox;
  } catch (error) {
    // By name, for the engine may have made it although its answer never came.
    await removeContainer(client.getContainer(name)).catch(() => {});
    await removeVolumes(client, [`${labels.sandbox}=${name}`]).catch(() => {});
    if (signal.aborted) throw new AlidadeError("cancelled", "Making a sandbox was cancelled.", { cause: error });
    throw asAlidadeError(error, "sandbox_unavailable", `The Docker engine could not make a sandbox from ${spec.image ?? baseImage}: `);
  }
}

async function startContainer(client: Docker, options: Docker.ContainerCreateOptions, signal: AbortSignal): Promise<string> {
  const container = await engineWork.run(signal, () => client.createContainer(options));
  await engineWork.run(signal, async () => {
    await container.start();
  });
  signal.throwIfAborted();
  return container.id;
}

/** Images known to have nothing in a folder, as `id folder`: the usual case costs nothing after the first time. */
const nothingThere = new Set<string>();

/** A memory file system hides what the image has in the workdir: it is copied over, and given to the sandbox's user. */
async function seedWorkdir(client: Docker, image: string, containerId: string, workdir: string, signal: AbortSignal): Promise<void> {
  const key = `${image} ${workdir}`;
  if (nothingThere.has(key)) return;
  await using source = await unstarted(client, image);
  const from = await source.container.getArchive({ path: `${workdir}/.` }).catch((error: unknown) => {
    if (statusOf(error) === 404) return null;
    throw error;
  });
  if (from === null) {
    nothingThere.add(key);
    return;
  }
  const unpacked = extract();
  const packed = pack();
  const filling = pipeline(from as Readable, new PassThrough(), unpacked);
  const changing = (async () => {
    for await (const entry of unpacked) {
      const header = { ...entry.header, uid: agentId, gid: agentId, uname: "", gname: "" };
      if (entry.header.type === "file") await pipeline(Readable.from(entry as unknown as AsyncIterable<Buffer>), packed.entry(header));
      else {
        entry.resume();
        packed.entry(header);
      }
    }
    packed.finalize();
  })();
  changing.catch((error: unknown) => packed.destroy(error as Error));
  await Promise.all([filling, changing, client.getContainer(containerId).putArchive(Readable.from(packed), { path: workdir })]);
  signal.throwIfAborted();
}

/** Containers of dead owners or with an expired lease; with `all`, every container that this host made. */
async function reap(options: ReapOptions, signal: AbortSignal): Promise<Reaped> {
  const client = await dockerClient(signal);
  const host = await hostId();
  const containers = await client.listContainers({ all: true, filters: { label: [labels.run] }, abortSignal: signal });
  const reaped: Reaped = { removed: [], failed: [] };
  for (const { Id, Labels, Names } of containers) {
    signal.throwIfAborted();
    const reason = await reasonToRemove(belongingsOf(Labels), host, options);
    if (reason === null) continue;
    const what = `container ${(Names[0] ?? Id).replace(/^\//, "")} of run ${Labels[labels.run]} (${reason})`;
    await removeInto(reaped, what, () => removeContainer(client.getContainer(Id)));
  }
  // Another process removed this container meanwhile.
  const { removed, failed } = await removeVolumes(
    client,
    [labels.run],
    async (found) => (await reasonToRemove(belongingsOf(found), host, options)) !== null,
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
