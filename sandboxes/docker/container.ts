/** Describes a container to the engine: it denies by default, bounds every place to write to, and has one process that only waits. */
import type Docker from "dockerode";
import type { Belongings } from "../../base/host/reap.ts";
import type { Limits } from "../../base/schema/task.ts";
import { leaseDeadline } from "../check-spec.ts";
import { doorInside } from "../door/door-kind.ts";
import { keeperFile } from "../door/door-pack.ts";
import type { ExecOptions, SandboxSpec } from "../sandbox.ts";
import { maskedPaths, readOnlyPaths } from "./confined/masked-paths.ts";

export const labels = {
  run: "alidade.run",
  owner: "alidade.owner",
  host: "alidade.host",
  lease: "alidade.lease",
  sandbox: "alidade.sandbox",
  /** The hash of the folder that a volume holds. No run owns it. */
  mount: "alidade.mount",
  /** The size of its contents as an archive. */
  mountBytes: "alidade.mount.bytes",
} as const;

/** The sandbox's unprivileged user. */
export const agentId = 1000;
/**
 * The user of the door's forwarder, which the agent can neither signal nor trace. No process inside may become this user or
 * the next ones (`becomes` in seccomp-profile.ts).
 */
export const doorId = 65530;
/** The users of tests that run apart, and of the work that they test. Neither is the agent's user, who owns the workdir. */
const judgeId = 65532;
const workId = 65531;
export const home = "/home/agent";
/** An engine's default is random, and would end up in transcripts. */
export const hostname = "sandbox";

/** Returns the agent's uid. */
export function userId(spec: Pick<SandboxSpec, "user">): number {
  return spec.user === "root" ? 0 : agentId;
}

/** Returns the uid of a command. */
export function commandUserId(spec: Pick<SandboxSpec, "user">, user: ExecOptions["user"]): number {
  if (user === "judge") return judgeId;
  if (user === "work") return workId;
  return user === "root" ? 0 : userId(spec);
}

/** Returns the variables of a command inside. `path`: the image's PATH. */
export function commandEnv(spec: Pick<SandboxSpec, "env">, path: string): Record<string, string> {
  return { HOME: home, PATH: path, LANG: "C.UTF-8", ...spec.env };
}

/**
 * The user of our own commands that look into the container. It is never the agent's user, nor one that root may become. So no
 * process inside, root's included, can signal or trace these commands: it lacks the capabilities.
 */
export const guardId = 65533;

/** Users and groups of ours. Root can become none of them, and give its files to each. */
export const graderIds: ReadonlySet<number> = new Set([doorId, workId, judgeId, guardId]);

/**
 * The capabilities that root needs to run package managers. These give files to other users, write to other users' folders, and
 * fetch as another user. Without CHOWN, FOWNER, SETUID or SETGID, apt or dpkg fails. Without DAC_OVERRIDE, apt reads no list.
 * Without FSETID, dpkg loses bits of modes and does not say so. None of the six reaches the kernel, a device or the network.
 */
export const rootRights = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"];

/** None if no system calls are filtered: nothing would then stop root from becoming one of our users. Only root gets them. */
function rightsOf({ writable }: Pick<SandboxSpec, "writable">, seccomp: string | null): string[] {
  return writable === "root" && seccomp !== null ? rootRights : [];
}

/** Files and folders of a memory file system: one for each 4 KiB. */
const inodesPerMegabyte = 256;

/**
 * A memory file system. Its files count as the container's memory. With all inodes used and names of 255 letters, a megabyte of
 * it costs one and a half. So all of them together may take at most two thirds of the limit. Then a full one ends in "no space
 * left", and not in the out-of-memory killer, which would end the container's first process last.
 */
export type MemoryPlace = { target: string; megabytes: number; mode: string; owner: number };

/** Returns the places that archives are copied into and out of. They are no part of the layer. */
export function memoryPlaces(spec: Pick<SandboxSpec, "limits" | "user">, imageVolumes: string[] = []): MemoryPlace[] {
  const owner = userId(spec);
  const share = (part: number) => Math.max(1, Math.floor(spec.limits.memory_mb / part));
  const own = [
    { target: home, megabytes: share(8), mode: "0755", owner },
    { target: "/tmp", megabytes: share(4), mode: "1777", owner: 0 },
  ];
  // The engine would mount an image's own VOLUMEs without a limit.
  const others = imageVolumes.filter((target) => own.every((place) => place.target !== target));
  return [...own, ...others.map((target) => ({ target, megabytes: share(32), mode: "0755", owner }))];
}

/** Returns memory file systems that programs expect, with their megabytes. We put nothing into them. */
export function otherPlaces(memory_mb: number): Record<string, number> {
  const most = (megabytes: number, part: number) => Math.max(1, Math.min(megabytes, Math.floor(memory_mb / part)));
  return { "/run": most(16, 64), "/var/tmp": most(16, 64), "/dev/shm": most(64, 16) };
}

/** Megabytes of shared memory segments of System V. They stay, and count as memory, after their process has ended. */
const sharedMegabytes = 16;

/**
 * Our own files below /etc, mounted read-only, except those that root may write to (own-etc.ts). The engine's `hostname` and
 * `resolv.conf` would be files on the host's disk, and root inside could write to them past every limit.
 */
export const etcFiles = ["passwd", "group", "hosts", "hostname", "resolv.conf"] as const;
/** There is no name server. */
export const emptyFile = "resolv.conf" satisfies (typeof etcFiles)[number];

/** Places where the engine mounts files of its own or of ours. They are no part of a layer. */
export const engineOwn = ["/dev", "/proc", "/sys", "/run", "/var/tmp", ...etcFiles.map((name) => `/etc/${name}`), "/.dockerenv"];

export type ContainerFiles = {
  /** Read-only mounts: those of the specification, and ours. */
  mounts: Docker.MountSettings[];
  imageVolumes: string[];
  /** null: the engine's own. */
  seccomp: string | null;
};

/**
 * The limits of one process. `nofile` is below every engine's own limit, and so low that a program which closes all possible
 * descriptors does not hang. `core` is 0 because the host's settings may send a core file to a program of the host. `msgqueue`
 * is 0 because its bytes count for the user across all sandboxes. `nproc` counts the same way, so it is not set; the
 * container's own limit of pids holds instead.
 */
const processLimits = { nofile: 16_384, core: 0, msgqueue: 0 };

export const ulimits = Object.entries(processLimits).map(([Name, limit]) => ({ Name, Soft: limit, Hard: limit }));

/** A container without a network whose first process, the keeper, only waits. */
export const keptOpen = {
  Entrypoint: [`${doorInside}/${keeperFile}`],
  Cmd: [],
  // The engine grants `CapAdd` to commands of root only if the container's own user is root.
  User: "0:0",
  WorkingDir: "/",
  NetworkDisabled: true,
  Healthcheck: { Test: ["NONE"] },
} satisfies Docker.ContainerCreateOptions;

export const withoutNetworkOrLog = {
  NetworkMode: "none", // Podman does not support `NetworkDisabled`
  LogConfig: { Type: "none", Config: {} },
} satisfies Docker.HostConfig;

/** Returns the whole request to the engine for one sandbox. */
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
    ...keptOpen,
    Hostname: hostname,
    Labels: ownLabels,
    HostConfig: {
      ...boundedHost(limits, files.seccomp),
      CapAdd: rightsOf(spec, files.seccomp),
      ...withoutNetworkOrLog,
      Mounts: [...memoryPlaces(spec, files.imageVolumes).map((place) => volume(place, ownLabels)), ...files.mounts],
      Tmpfs: Object.fromEntries(
        Object.entries(otherPlaces(limits.memory_mb)).map(([target, megabytes]) => [target, `${sizeOf(megabytes)},mode=1777`]),
      ),
    },
  };
}

/** Returns the limits of every container: of a sandbox, and of the services beside it. */
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

/** Returns the engine's security options. `seccomp`: a profile as JSON; null: the engine's own. */
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

/** Returns who made it, by its labels. */
export function belongingsOf(found: Record<string, string>): Belongings {
  return {
    run_id: found[labels.run] ?? "",
    owner: found[labels.owner] ?? "",
    host: found[labels.host] ?? "",
    lease: Number(found[labels.lease]),
  };
}

/** Returns an anonymous volume: the engine makes it with the container, and removes it with the container. */
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
