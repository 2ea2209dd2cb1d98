/** What a container of ours looks like: deny by default, bounded places to write to, one process that only waits. */
import type Docker from "dockerode";
import type { Belongings } from "../../base/host/reap.ts";
import type { Limits } from "../../base/schema/task.ts";
import { leaseDeadline } from "../check-spec.ts";
import { doorInside } from "../door/door-kind.ts";
import { keeperFile } from "../door/door-pack.ts";
import type { ExecOptions, SandboxSpec } from "../sandbox.ts";
import { maskedPaths, readOnlyPaths } from "./masked-paths.ts";

export const labels = {
  run: "alidade.run",
  owner: "alidade.owner",
  host: "alidade.host",
  lease: "alidade.lease",
  sandbox: "alidade.sandbox",
  /** The hash of the folder that a volume holds. No run owns it. */
  mount: "alidade.mount",
  /** What is in it, as an archive. */
  mountBytes: "alidade.mount.bytes",
} as const;

/** The sandbox's unprivileged user. */
export const agentId = 1000;
/**
 * The door's forwarder: a user that the agent can neither signal nor trace. It and the next ones are no users that a process
 * inside may become (`becomes` in seccomp-profile.ts).
 */
export const doorId = 65530;
/** Tests that run apart, and the work that they test: neither is the agent's user, whose files lie in the workdir. */
const judgeId = 65532;
const workId = 65531;
export const home = "/home/agent";
/** An engine's default is random, and would find its way into transcripts. */
export const hostname = "sandbox";

/** The uid that the agent has. */
export function userId(spec: Pick<SandboxSpec, "user">): number {
  return spec.user === "root" ? 0 : agentId;
}

/** The uid of a command. */
export function commandUserId(spec: Pick<SandboxSpec, "user">, user: ExecOptions["user"]): number {
  if (user === "judge") return judgeId;
  if (user === "work") return workId;
  return user === "root" ? 0 : userId(spec);
}

/** The variables of a command inside. `path`: the image's PATH. */
export function commandEnv(spec: Pick<SandboxSpec, "env">, path: string): Record<string, string> {
  return { HOME: home, PATH: path, LANG: "C.UTF-8", ...spec.env };
}

/**
 * The uid of our own looks into the container. Without the capabilities for it a process can neither signal nor trace another
 * user's, root or not: so it is never the agent's, and no user that root may become.
 */
export const guardId = 65533;

/** Users and groups of ours. Root can become none of them, and give its files to each. */
export const graderIds: ReadonlySet<number> = new Set([doorId, workId, judgeId, guardId]);

/**
 * What root needs where it may change the image's files: package managers give files away, write where others do, and fetch
 * as another user. Without CHOWN, FOWNER, SETUID or SETGID apt or dpkg fail, without DAC_OVERRIDE apt reads no list, and
 * without FSETID dpkg loses bits of modes in silence. None of them reaches the kernel, a device or the network.
 */
export const rootRights = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"];

/** Nothing holds root to users that are not ours where no system calls are filtered. Other users get no right in any case. */
function rightsOf({ writable }: Pick<SandboxSpec, "writable">, seccomp: string | null): string[] {
  return writable === "root" && seccomp !== null ? rootRights : [];
}

/** Files and folders of a memory file system: one for each 4 KiB. */
const inodesPerMegabyte = 256;

/**
 * A memory file system. What is written there is memory of the container, and with all its inodes and names of 255
 * letters a megabyte costs one and a half: together they take at most two thirds of the limit, so that a full one ends in
 * "no space left" and not in the out-of-memory killer, whose last prey is the process that keeps the container.
 */
export type MemoryPlace = { target: string; megabytes: number; mode: string; owner: number };

/** Places that archives go into and come out of. What lies there is no part of the layer. */
export function memoryPlaces(spec: Pick<SandboxSpec, "limits" | "user">, imageVolumes: string[] = []): MemoryPlace[] {
  const owner = userId(spec);
  const share = (part: number) => Math.max(1, Math.floor(spec.limits.memory_mb / part));
  const own = [
    { target: home, megabytes: share(8), mode: "0755", owner },
    { target: "/tmp", megabytes: share(4), mode: "1777", owner: 0 },
  ];
  // An image's own VOLUMEs would come without any cap.
  const others = imageVolumes.filter((target) => own.every((place) => place.target !== target));
  return [...own, ...others.map((target) => ({ target, megabytes: share(32), mode: "0755", owner }))];
}

/** Memory file systems that programs expect, and that nothing is put into. In megabytes. */
export function otherPlaces(memory_mb: number): Record<string, number> {
  const most = (megabytes: number, part: number) => Math.max(1, Math.min(megabytes, Math.floor(memory_mb / part)));
  return { "/run": most(16, 64), "/var/tmp": most(16, 64), "/dev/shm": most(64, 16) };
}

/** Shared memory segments of System V in megabytes: they stay, and are charged, when their process is gone. */
const sharedMegabytes = 16;

/**
 * Files of ours below /etc, mounted read-only, but for those that root may write to (own-etc.ts). An engine's own `hostname`
 * and `resolv.conf` are files of the host's disk that root inside may write to, past every limit.
 */
export const etcFiles = ["passwd", "group", "hosts", "hostname", "resolv.conf"] as const;
/** There is no name server. */
export const emptyFile = "resolv.conf" satisfies (typeof etcFiles)[number];

/** Where the engine mounts something of its own or of ours: no part of a layer. */
export const engineOwn = ["/dev", "/proc", "/sys", "/run", "/var/tmp", ...etcFiles.map((name) => `/etc/${name}`), "/.dockerenv"];

export type ContainerFiles = {
  /** Read-only: those of the specification and ours. */
  mounts: Docker.MountSettings[];
  imageVolumes: string[];
  /** null: the engine's own. */
  seccomp: string | null;
};

/**
 * What one process may have. `nofile` is below every engine's own limit, and low enough that a program which closes all
 * descriptors goes on. A core file may go to a program of the host, by the host's settings. The bytes of message queues are
 * counted for the user across all sandboxes, and so are the processes of `nproc`, which is not set: the container's own
 * limit of pids holds.
 */
const processLimits = { nofile: 16_384, core: 0, msgqueue: 0 };

export const ulimits = Object.entries(processLimits).map(([Name, limit]) => ({ Name, Soft: limit, Hard: limit }));

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
  return {
    name,
    Image: image,
    Entrypoint: [`${doorInside}/${keeperFile}`],
    Cmd: [],
    // The rights of a container whose own process is another user's are no rights of root's.
    User: "0:0",
    WorkingDir: "/",
    Hostname: hostname,
    NetworkDisabled: true,
    Healthcheck: { Test: ["NONE"] },
    Labels: ownLabels,
    HostConfig: {
      ...boundedHost(limits, files.seccomp),
      CapAdd: rightsOf(spec, files.seccomp),
      NetworkMode: "none", // Podman does not know NetworkDisabled
      LogConfig: { Type: "none", Config: {} },
      Mounts: [...memoryPlaces(spec, files.imageVolumes).map((place) => volume(place, ownLabels)), ...files.mounts],
      Tmpfs: Object.fromEntries(
        Object.entries(otherPlaces(limits.memory_mb)).map(([target, megabytes]) => [target, `${sizeOf(megabytes)},mode=1777`]),
      ),
    },
  };
}

/** What holds every container, a sandbox and the services beside it. */
export function boundedHost({ memory_mb, cpus, pids }: Pick<Limits, "memory_mb" | "cpus" | "pids">, seccomp: string | null) {
  const memory = memory_mb * 1024 * 1024;
  return {
    CapDrop: ["ALL"],
    SecurityOpt: securityOptions(seccomp),
    MaskedPaths: [...maskedPaths],
    ReadonlyPaths: [...readOnlyPaths],
    PidsLimit: pids,
    Memory: memory,
    MemorySwap: memory,
    NanoCpus: Math.round(cpus * 1e9),
    Sysctls: { "kernel.shmall": String(Math.min(sharedMegabytes, Math.ceil(memory_mb / 16)) * 256) }, // in pages of 4 KiB
    Ulimits: ulimits,
    RestartPolicy: { Name: "no" },
  } satisfies Docker.HostConfig;
}

/** `seccomp`: a profile as JSON; null: the engine's own. */
export function securityOptions(seccomp: string | null): string[] {
  return ["no-new-privileges", ...(seccomp === null ? [] : [`seccomp=${seccomp}`])];
}

export function sandboxLabels(spec: Pick<SandboxSpec, "run_id" | "owner" | "limits">, host: string): Record<string, string> {
  return {
    [labels.run]: spec.run_id,
    [labels.owner]: spec.owner,
    [labels.host]: host,
    [labels.lease]: String(leaseDeadline(spec.limits)),
  };
}

/** Who made it, as its labels say. */
export function belongingsOf(found: Record<string, string>): Belongings {
  return {
    run_id: found[labels.run] ?? "",
    owner: found[labels.owner] ?? "",
    host: found[labels.host] ?? "",
    lease: Number(found[labels.lease]),
  };
}

/** Anonymous: the engine makes it with the container and removes it with the container. */
export function volume(place: MemoryPlace, ownLabels: Record<string, string>): Docker.MountSettings {
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

export function sizeOf(megabytes: number): string {
  return `size=${megabytes}m,nr_inodes=${megabytes * inodesPerMegabyte}`;
}
