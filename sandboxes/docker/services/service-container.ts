/**
 * Starts one service of a task. It has its own container in one of the sandbox's network namespaces, with the sandbox's
 * kinds of limits.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Duplex, Readable } from "node:stream";
import type Docker from "dockerode";
import { AlidadeError } from "../../../base/errors.ts";
import { isBelow, type TreeFile } from "../../../base/files/file-tree.ts";
import { BoundedOutput } from "../../../base/host/bounded-output.ts";
import type { Display } from "../../../base/schema/environment/display.ts";
import { type Service, serviceFiles } from "../../../base/schema/environment/services.ts";
import { desktopMounts } from "../../desktop/desktop-mounts.ts";
import { type ImageStart, type ReadyCheck, type ReadyWords, readyCheck } from "../../healthcheck.ts";
import type { ExecResult, SandboxFacts, ServiceFacts, StateOptions } from "../../sandbox.ts";
import { demultiplex } from "../attached-stream.ts";
import { boundedHost, type MemoryPlace, volume } from "../container.ts";
import { runCommand } from "../exec.ts";
import { mountsAt } from "../hosts/mounts.ts";
import { environmentImage } from "../images/environment-image.ts";
import { imageAt } from "../images/image-at.ts";
import { cpuOf, type ImageFacts, imageFacts, ownPasswd } from "../images/image-facts.ts";
import { withFolders } from "../images/with-folders.ts";
import { startContainer } from "../start-container.ts";
import { Watchdog } from "../watchdog.ts";

/**
 * `container`: the services use its network namespace; for a lone service, the service's own container. `etc`: a folder of this
 * machine with their /etc/hosts.
 */
export type ServiceNetwork = { container: string; etc: string };

/** What the services of one sandbox share. */
export type ServicePlace = {
  docker: Docker;
  /** The name of the sandbox's container. */
  sandbox: string;
  networks: Record<Service["network"], ServiceNetwork>;
  /** What the reaper finds them by. */
  labels: Record<string, string>;
  seccomp: string | null;
  disk_limit: Exclude<SandboxFacts["disk_limit"], "none">;
  /** Seconds that a service which is to complete may take. */
  init_seconds: number;
  /** Which of them shows a screen; null: none. */
  display: Display | null;
};

export type ServiceContainer = {
  container: Docker.Container;
  facts: ServiceFacts;
  /** null: it names none, or wants none. */
  check: ReadyCheck | null;
  words: ReadyWords;
  start: ImageStart;
  exec(argv: string[], options?: { cwd?: string; timeout_ms?: number; signal?: AbortSignal }): Promise<ExecResult>;
  watchdog: Watchdog | null;
};

/** How a service ended. `fromOutside`: it was killed, and not for its own memory. `msAgo`: by the engine's clock. */
export type ServiceEnd = { fromOutside: boolean; msAgo: number };

/** All services of a sandbox. Disposing them removes their containers. */
export type RunningServices = AsyncDisposable & {
  facts: ServiceFacts[];
  /** Returns the container whose network namespace a service uses; null: no such service. */
  networkOf(name: string): string | null;
  /** Tells whether a service is in a network namespace apart from the agent's. */
  isApart(name: string): boolean;
  /** Tells whether they equal new ones: each that should live does, and its image's name still means the same image. Never rejects. */
  areAsNew(): Promise<boolean>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** As `Sandbox.readState`. */
  readState(name: string, options: StateOptions): Promise<TreeFile[]>;
  /** Returns how a service ended; null if it still runs. */
  endOf(name: string): Promise<ServiceEnd | null>;
  /** Runs a command in the service `name`. */
  start(name: string, argv: string[], signal: AbortSignal): Promise<Duplex>;
};

/** Bytes of a service's output that the engine keeps, and what of it an error shows. */
const logSize = "64k";
const saidBytes = 2_000;

/** Makes and starts it. `container`: the name that it gets, by which the caller removes it. */
export async function startService(
  place: ServicePlace,
  { name, service, container }: { name: string; service: Service; container: string },
  signal: AbortSignal,
): Promise<ServiceContainer> {
  const { docker, disk_limit } = place;
  const asked = await environmentImage(docker, service, { signal });
  const image = await imageFacts(docker, asked);
  const { Config } = await imageAt(docker, image.id).inspect();
  const user = service.user ?? Config.User;
  const owner = await uidOf(user, image.etc);
  assertStays(service, image);
  const shown = place.display?.service === name ? await desktopMounts(place.display, cpuOf(image.platform)) : {};
  const argv = [...(service.entrypoint ?? image.entrypoint), ...(service.command ?? (service.entrypoint ? [] : (Config.Cmd ?? [])))];
  // Without a command the container cannot start. Docker's error then names the task's image, not one of ours.
  const folders = argv.length === 0 ? [] : service.folders;
  const from = await withFolders(docker, image.id, folders, owner, signal);
  const request = await containerRequest(place, container, service, image, { from, argv, user, owner, shown }, signal);
  const started = await startContainer(docker, request, service, disk_limit, null, signal);
  const field = `environment.services.${name}`;
  return {
    container: started.container,
    facts: { name, image: asked, image_digest: image.id },
    check: checkOf(service, image),
    words: { who: `The service ${name}`, start: `The service ${name}, started as`, cure: rightsOf(service), field },
    start: startOf(started.container, argv),
    exec: (command, options = {}) => execIn(docker, started.container.id, command, options),
    watchdog: started.disk_limit === "watchdog" ? new Watchdog(started.container, service.disk_mb) : null,
  };
}

/** What lies in a VOLUME is memory here, which is gone as soon as the service has ended. */
function assertStays({ state }: Service, { volumes }: ImageFacts): void {
  const lost = state.find((path) => volumes.some((volume) => isBelow(path, volume) || isBelow(volume, path)));
  if (lost === undefined) return;
  const message = `its state ${lost} lies in a VOLUME of its image and is gone when it ends: let it keep its state in another folder.`;
  throw new AlidadeError("sandbox_unavailable", message);
}

function checkOf({ healthcheck }: Service, image: ImageFacts): ReadyCheck | null {
  if (healthcheck === "none" || healthcheck === "completed") return null;
  if (healthcheck !== null) return readyCheck(healthcheck);
  // Where the service works, which may be another folder than the image says.
  return image.healthcheck && { ...image.healthcheck, cwd: "" };
}

/** Most images that fail here begin as root and go on as another user. */
function rightsOf({ user }: Service): string {
  const named = user === null ? "name the user that its program is to have" : `its user is ${user}`;
  return `A service has no capabilities and cannot change its user: ${named}.`;
}

async function containerRequest(
  { docker, networks, labels, seccomp }: ServicePlace,
  name: string,
  service: Service,
  image: ImageFacts,
  { from, argv, user, owner, shown }: { from: string; argv: string[]; user: string; owner: number; shown: Record<string, string> },
  signal: AbortSignal,
): Promise<Docker.ContainerCreateOptions> {
  const { entrypoint, command, env, workdir, memory_mb } = service;
  const { container, etc } = networks[service.network];
  const places = image.volumes.map((target): MemoryPlace => ({ target, megabytes: volumeSize(memory_mb, image), mode: "0755", owner }));
  const folders = { ...shown, ...(service.files !== null && { [serviceFiles]: service.files }) };
  const ownCommand = { ...(entrypoint !== null && { Entrypoint: entrypoint }), ...(command !== null && { Cmd: command }) };
  const mounts = await mountsAt(docker, image.id, { folders, files: { folder: etc, names: ownFiles } }, signal);
  return {
    name,
    Image: from,
    // The image with folders does not keep the command of the original image.
    ...(from === image.id ? ownCommand : { Entrypoint: argv.slice(0, 1), Cmd: argv.slice(1) }),
    ...(workdir !== null && { WorkingDir: workdir }),
    User: user,
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    Healthcheck: { Test: ["NONE"] },
    Labels: labels,
    HostConfig: {
      ...boundedHost(service, seccomp),
      NetworkMode: container === name ? "none" : `container:${container}`,
      LogConfig: { Type: "json-file", Config: { "max-size": logSize, "max-file": "1" } },
      ShmSize: Math.ceil(memory_mb / 16) * 1024 * 1024,
      Mounts: [...places.map((one) => volume(one, labels)), ...mounts],
    },
  };
}

/** Else the engine's, which root inside may write to past every limit. */
const ownFiles = { "/etc/hosts": "hosts", "/etc/hostname": "hostname", "/etc/resolv.conf": "resolv.conf" };

/** What an image's VOLUMEs may hold, in megabytes each: half of the memory together, for they are memory. */
function volumeSize(memory_mb: number, { volumes }: ImageFacts): number {
  return Math.max(1, Math.floor(memory_mb / 2 / volumes.length));
}

/** The uid of a user as an engine is told of it, by the image's own list; root where the list does not know it. */
async function uidOf(user: string, etc: string): Promise<number> {
  const [name = ""] = user.split(":");
  if (/^\d+$/.test(name)) return Number(name);
  const lines = (await readFile(join(etc, ownPasswd), "utf8")).split("\n").map((line) => line.split(":"));
  return Number(lines.find(([known]) => known === name)?.[2] ?? 0);
}

function startOf(container: Docker.Container, argv: string[]): ImageStart {
  let said = "";
  return {
    argv,
    goesOn: true,
    reached: () => false,
    end: async () => {
      const { State } = await container.inspect();
      said = await outputOf(container);
      if (State.OOMKilled) said += " (it was killed for memory)";
      return State.Running ? null : State.ExitCode;
    },
    output: () => said,
  };
}

async function outputOf(container: Docker.Container): Promise<string> {
  const output = new BoundedOutput(saidBytes, "end");
  const logs = await container.logs({ stdout: true, stderr: true, tail: 50, follow: false });
  for await (const { bytes } of demultiplex(Readable.from([logs]))) output.push(bytes);
  return output.toString();
}

/** A command that hangs is left behind, and counts among the service's processes. */
async function execIn(
  docker: Docker,
  id: string,
  argv: string[],
  { cwd = "", timeout_ms, signal }: { cwd?: string; timeout_ms?: number; signal?: AbortSignal },
): Promise<ExecResult> {
  const command = {
    argv,
    user: "",
    cwd,
    env: {},
    max_output_bytes: saidBytes,
    keep_output: "end" as const,
    timeout_ms,
    signal,
    kill: async () => undefined,
  };
  try {
    return { ...(await runCommand(docker, id, command)), out_of_memory: false };
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof AlidadeError)) throw error;
    // Most of all because the service has ended, which is looked at next and says more.
    const ended = { timed_out: false, out_of_memory: false, dropped_bytes: 0, duration_ms: 0 };
    return { exit_code: null, stdout: "", stderr: error.message, ...ended };
  }
}
