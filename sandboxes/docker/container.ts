/** What a container of ours looks like: deny by default, three writable places, one process that only waits. */
import type Docker from "dockerode";
import type { Limits } from "../../schema/task.ts";
import { leaseDeadline } from "../check-spec.ts";
import type { SandboxSpec } from "../sandbox.ts";

export const labels = {
  run: "alidade.run",
  owner: "alidade.owner",
  host: "alidade.host",
  lease: "alidade.lease",
  sandbox: "alidade.sandbox",
} as const;

/** The sandbox's unprivileged user. */
export const agentId = 1000;
/** The door's forwarder: a user that the agent can neither signal nor trace. */
export const doorId = 65534;
export const home = "/home/agent";

/**
 * One process that never starts another, for where the limit of pids is reached a shell ends with "Cannot fork" and the
 * container with it. The kernel reaps what its children leave, as SIGCHLD is ignored; `kill -9 -1` from inside leaves it
 * alone, and as root it can also not be traced by the agent. An init that waits for one child would end with it.
 */
const ignoring = "env --ignore-signal=CHLD";
/** Images without that (coreutils before 8.31, BusyBox) get a shell, which reaps while it waits and forks once an hour. */
const waitForever = ["sh", "-c", `${ignoring} true && exec ${ignoring} sleep infinity; while :; do sleep 3600 & wait; done`];

/** Files and folders of a writable place: one for each 4 KiB. */
const inodesPerMegabyte = 256;
/** Megabytes of kernel memory that a megabyte of place costs with all its inodes, names of 255 letters, and pages. */
const memoryPerMegabyte = 1.5;
/** Memory file systems beside the writable places, in megabytes. Programs expect them. */
const otherPlaces = { "/run": 16, "/var/tmp": 16, "/dev/shm": 64 };
/** Shared memory segments of System V in megabytes: they stay, and are charged, when their process is gone. */
const sharedMegabytes = 16;

export type WritablePlace = { target: string; megabytes: number; mode: string; owner: number };

/**
 * The writable places; together they hold `disk_mb`. They are memory file systems: the only size cap that every engine
 * has, and archives go in and out of them although the root is read-only.
 */
export function writablePlaces(workdir: string, disk_mb: number, imageVolumes: string[] = []): WritablePlace[] {
  const places = new Map<string, WritablePlace>();
  const add = (target: string, share: number, mode = "0755", owner = agentId) => {
    const megabytes = Math.max(1, Math.floor(disk_mb * share)) + (places.get(target)?.megabytes ?? 0);
    places.set(target, { target, megabytes, mode, owner });
  };
  add(workdir, 1 / 2);
  add(home, 1 / 4);
  add("/tmp", 1 / 4, "1777", 0);
  // An image's own VOLUMEs would come without any cap.
  for (const target of imageVolumes) if (!places.has(target)) places.set(target, { target, megabytes: 64, mode: "0755", owner: agentId });
  return [...places.values()];
}

/**
 * MiB of memory that a container may take. What is written counts as its memory, so that a full disk must fit in beside
 * the processes; else a large file would end in the out-of-memory killer and not in "no space left", and where files
 * alone take all of the memory, the killer's last prey is the process that keeps the container.
 */
export function containerMegabytes(limits: Limits, places: Pick<WritablePlace, "megabytes">[]): number {
  const others = Object.values(otherPlaces).reduce((sum, megabytes) => sum + megabytes, sharedMegabytes);
  const writable = places.reduce((sum, place) => sum + place.megabytes, others);
  return Math.ceil(limits.memory_mb + memoryPerMegabyte * writable);
}

export type ContainerFiles = {
  /** Path inside -> path on the host, of ours. */
  mounts: Record<string, string>;
  imageVolumes: string[];
};

/** The whole request to the engine for one sandbox. */
export function containerOptions(
  name: string,
  spec: SandboxSpec,
  image: string,
  files: ContainerFiles,
  host: string,
): Docker.ContainerCreateOptions {
  const { limits } = spec;
  const ownLabels = { ...sandboxLabels(spec, host), [labels.sandbox]: name };
  const places = writablePlaces(spec.workdir, limits.disk_mb, files.imageVolumes);
  const memory = containerMegabytes(limits, places) * 1024 * 1024;
  return {
    name,
    Image: image,
    Entrypoint: waitForever,
    Cmd: [],
    User: "0:0",
    WorkingDir: "/",
    Hostname: "sandbox", // the engine's default is random, and would find its way into transcripts
    NetworkDisabled: true,
    Healthcheck: { Test: ["NONE"] },
    Labels: ownLabels,
    HostConfig: {
      NetworkMode: "none", // Podman does not know NetworkDisabled
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: limits.pids,
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.round(limits.cpus * 1e9),
      ReadonlyRootfs: true,
      Mounts: [...places.map((place) => volume(place, ownLabels)), ...readOnly({ ...spec.mounts, ...files.mounts })],
      Tmpfs: Object.fromEntries(Object.entries(otherPlaces).map(([target, megabytes]) => [target, `${sizeOf(megabytes)},mode=1777`])),
      Sysctls: { "kernel.shmall": String(sharedMegabytes * 256) }, // in pages of 4 KiB
      LogConfig: { Type: "none", Config: {} },
      Ulimits: [{ Name: "core", Soft: 0, Hard: 0 }],
      RestartPolicy: { Name: "no" },
    },
  };
}

export function sandboxLabels(spec: Pick<SandboxSpec, "run_id" | "owner" | "limits">, host: string): Record<string, string> {
  return {
    [labels.run]: spec.run_id,
    [labels.owner]: spec.owner,
    [labels.host]: host,
    [labels.lease]: String(leaseDeadline(spec.limits)),
  };
}

/** Anonymous: the engine makes it with the container and removes it with the container. */
function volume(place: WritablePlace, ownLabels: Record<string, string>): Docker.MountSettings {
  const options = `${sizeOf(place.megabytes)},mode=${place.mode},uid=${place.owner},gid=${place.owner}`;
  return {
    Type: "volume",
    Target: place.target,
    Source: "",
    VolumeOptions: {
      NoCopy: true,
      Labels: ownLabels,
      DriverConfig: { Name: "local", Options: { type: "tmpfs", device: "tmpfs", o: options } },
    },
  } as Docker.MountSettings;
}

function sizeOf(megabytes: number): string {
  return `size=${megabytes}m,nr_inodes=${megabytes * inodesPerMegabyte}`;
}

function readOnly(mounts: Record<string, string>): Docker.MountSettings[] {
  return Object.entries(mounts).map(([target, source]) => ({ Type: "bind", Target: target, Source: source, ReadOnly: true }));
}
