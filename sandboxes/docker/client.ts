/** The engine that is used where the operator lists none, and what every call to an engine shares. */
import { existsSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { Limiter } from "../../base/host/limiter.ts";
import { connectEngine, hello } from "./hosts/engine-connection.ts";

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
