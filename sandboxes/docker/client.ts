/** The engine that is used where the operator lists none, and what every call to an engine shares. */
import { existsSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../errors.ts";
import { Limiter } from "../../host/limiter.ts";
import { connectEngine, hello } from "../engines/engine-connection.ts";

/** What is kept for each engine: two of them share no image and no container. `of`: the engine, or a container of it. */
export function perEngine<T>(make: () => T): (of: { modem: object }) => T {
  const kept = new WeakMap<object, T>();
  return ({ modem }) => {
    const found = kept.get(modem) ?? make();
    kept.set(modem, found);
    return found;
  };
}

/**
 * In front of create, start, exec and remove: they are CPU work of the engine (runtime, shim), so that more of them at
 * once only queue inside it. At 100 at once p95 was 8 to 12 s without it.
 */
export const engineWork = perEngine(() => new Limiter(2 * availableParallelism()));

let known: Docker | null = null;

/** The engine, or an AlidadeError `sandbox_unavailable` that says what would help. */
export async function dockerClient(signal?: AbortSignal): Promise<Docker> {
  if (known !== null) return known;
  const problems: string[] = [];
  for (const { name, docker } of candidates()) {
    try {
      await hello(docker, signal);
      known = docker;
      return docker;
    } catch (error) {
      signal?.throwIfAborted();
      problems.push(`${name}: ${messageOf(error)}`);
    }
  }
  throw new AlidadeError(
    "sandbox_unavailable",
    `No Docker engine answers (${problems.join("; ") || "no socket found"}). Start Docker (or Podman's API service), or set DOCKER_HOST to where it listens.`,
  );
}

/** Asks the engine anew, for `unavailable()`: one that was reachable may be gone. */
export async function forgetUnreachable(signal: AbortSignal): Promise<void> {
  if (known === null) return;
  await hello(known, signal).catch(() => {
    known = null;
  });
}

/** `DOCKER_HOST` decides where it is set; else every socket that an engine is known to make. */
function candidates(): { name: string; docker: Docker }[] {
  const host = process.env.DOCKER_HOST;
  if (host !== undefined && host !== "") return [{ name: `DOCKER_HOST=${host}`, docker: connectEngine({ host }) }];
  const runtime = process.env.XDG_RUNTIME_DIR;
  const sockets = [
    "/var/run/docker.sock",
    join(homedir(), ".docker/run/docker.sock"),
    join(homedir(), ".docker/desktop/docker.sock"),
    join(homedir(), ".colima/default/docker.sock"),
    join(homedir(), ".orbstack/run/docker.sock"),
    ...(runtime === undefined ? [] : [join(runtime, "docker.sock"), join(runtime, "podman/podman.sock")]),
    "/run/podman/podman.sock",
  ];
  return sockets.filter((path) => existsSync(path)).map((path) => ({ name: path, docker: connectEngine({ host: `unix://${path}` }) }));
}

/** Which profile of system calls an engine holds its containers to; see `SandboxFacts.seccomp`. */
export type KernelFilter = "own" | "engine" | "none";

const filters = new WeakMap<Docker, Promise<KernelFilter>>();

/** Asked once: an engine that changes is started anew, and its client with it. */
export function kernelFilter(docker: Docker): Promise<KernelFilter> {
  const found = filters.get(docker) ?? askForFilter(docker);
  filters.set(docker, found);
  found.catch(() => filters.delete(docker));
  return found;
}

async function askForFilter(docker: Docker): Promise<KernelFilter> {
  const { SecurityOptions } = (await docker.info()) as { SecurityOptions?: string[] };
  if (!SecurityOptions?.some((option) => option.startsWith("name=seccomp"))) return "none";
  // Podman takes the profile for the name of a file, and keeps its own.
  return (await isPodman(docker)) ? "engine" : "own";
}

export async function isPodman(docker: Docker): Promise<boolean> {
  const { Components } = (await docker.version()) as { Components?: { Name: string }[] };
  return Components?.some(({ Name }) => /podman/i.test(Name)) ?? false;
}

const held = perEngine(() => new Map<"answer", Promise<string | null>>());

/** Why the engine's containers could take all memory or processes of its machine; null: they are held to their limits. */
export function whyUnlimited(docker: Docker): Promise<string | null> {
  const known = held(docker);
  const answer = known.get("answer") ?? askForLimits(docker);
  known.set("answer", answer);
  answer.catch(() => known.delete("answer"));
  return answer;
}

async function askForLimits(docker: Docker): Promise<string | null> {
  const { MemoryLimit, PidsLimit } = (await docker.info()) as { MemoryLimit?: boolean; PidsLimit?: boolean };
  const controllers = (await isPodman(docker)) ? await podmanControllers(docker) : null;
  const lacks = (own: boolean | undefined, name: string) => own === false || (controllers !== null && !controllers.includes(name));
  const missing = [...(lacks(MemoryLimit, "memory") ? ["memory"] : []), ...(lacks(PidsLimit, "pids") ? ["processes"] : [])];
  if (missing.length === 0) return null;
  return `it holds containers to no limit of ${missing.join(" and ")}; an engine without root needs cgroup v2 with the controllers memory and pids delegated to its user`;
}

/** Podman tells Docker's clients that it has every limit, also where it ignores them. */
async function podmanControllers(docker: Docker): Promise<string[]> {
  const request = { path: "/v4.0.0/libpod/info", method: "GET", statusCodes: { 200: true } };
  const answer = await new Promise<unknown>((resolve, reject) => {
    docker.modem.dial(request, (error: unknown, found: unknown) => (error ? reject(error) : resolve(found)));
  });
  return (answer as { host?: { cgroupControllers?: string[] } }).host?.cgroupControllers ?? [];
}

/** The HTTP status of a failed call to the engine; null when it did not come that far. */
export function statusOf(error: unknown): number | null {
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  return typeof status === "number" ? status : null;
}

export function isNotFound(error: unknown): boolean {
  return statusOf(error) === 404;
}

/** The kernel cannot always stop a crowd of processes that start others at once: a runtime gives up after a moment, and may be asked again. */
const pauseTries = 10;
const pauseAgainMs = 200;

/** Stops every process of a container where it stands. */
export async function pauseContainer(container: Docker.Container, tries = pauseTries): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await container.pause();
    } catch (error) {
      if (tried >= tries || !/unable to freeze/.test(messageOf(error))) throw error;
    }
    await sleep(pauseAgainMs);
  }
}
