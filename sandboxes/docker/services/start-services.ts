/**
 * The services of a task, started beside its sandbox in the order that they ask for.
 *
 * A service uses the sandbox's network namespace, or the one that services apart share. Neither has a network device. The
 * names of services lead to loopback there, and nothing leads to the host, another rollout or a name server. So two
 * services of a namespace cannot use the same port, and all in it reach what a service opens on loopback.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError } from "../../../base/errors.ts";
import type { Service, Services } from "../../../base/schema/environment/services.ts";
import { startOrder } from "../../../base/schema/environment/start-order.ts";
import { noService } from "../../door/connector.ts";
import { endedEarly, failure, hasEnded, untilReady } from "../../healthcheck.ts";
import type { StateOptions } from "../../sandbox.ts";
import { pauseContainer } from "../client.ts";
import { imageAt } from "../images/image-at.ts";
import { removeContainer } from "../remove.ts";
import { commandStream } from "./command-stream.ts";
import { readState } from "./read-state.ts";
import { type RunningServices, type ServiceContainer, type ServiceEnd, type ServicePlace, startService } from "./service-container.ts";

type StartingService = { started: Promise<ServiceContainer>; ready: Promise<void> };

/** How often the end of a service that is to complete is looked for. */
const lookMs = 200;

/**
 * Resolves when all are ready. Throws what the first one failed with, and nothing of them is left then: `sandbox_unhealthy` with
 * its name and the end of its output, or what its image failed with.
 */
export async function startServices(place: ServicePlace, services: Services, signal: AbortSignal): Promise<RunningServices> {
  await using scope = new AsyncDisposableStack();
  const stop = new AbortController();
  const within = AbortSignal.any([signal, stop.signal]);
  const starting = new Map<string, StartingService>();
  const containers = Object.keys(services).map((name) => `${place.sandbox}-${name}`);
  // By name, for the engine may have made one although its answer never came.
  scope.defer(() => removeAll(containers.map((one) => place.docker.getContainer(one))));
  for (const name of startOrder(services) ?? []) {
    const order = { name, service: services[name] as Service, container: `${place.sandbox}-${name}` };
    starting.set(name, begin(place, order, starting, within));
  }
  const all = [...starting.values()];
  try {
    await Promise.all(all.map(({ ready }) => ready));
    const running = await Promise.all(all.map(({ started }) => started));
    await Promise.all(running.map(assertAlive));
    for (const { watchdog } of running) scope.defer(() => watchdog?.stop());
    const release = scope.move();
    const networkOf = (name: string) =>
      Object.hasOwn(services, name) ? place.networks[(services[name] as Service).network].container : null;
    const facts = running.map((one) => one.facts);
    const isApart = (name: string) => Object.hasOwn(services, name) && (services[name] as Service).network === "apart";
    const start: RunningServices["start"] = (one, argv, within) => startIn(place, running, one, argv, within);
    const read: RunningServices["readState"] = (one, options) => readStateIn(place, running, services, one, options);
    return {
      facts,
      networkOf,
      isApart,
      endOf: (one) => endIn(place, running, one),
      start,
      readState: read,
      ...together(place.docker, running),
      [Symbol.asyncDispose]: () => release.disposeAsync(),
    };
  } catch (error) {
    stop.abort();
    for (const { started, ready } of all) {
      const [one] = await Promise.allSettled([started, ready]);
      if (one.status === "fulfilled") one.value.watchdog?.stop();
    }
    throw error;
  }
}

/** All are tried. Throws what the first one failed with. */
async function removeAll(containers: Docker.Container[]): Promise<void> {
  const removals = await Promise.allSettled(containers.map((one) => removeContainer(one)));
  for (const one of removals) if (one.status === "rejected") throw one.reason;
}

/** What a shell and an engine say of a process that SIGKILL ended. */
const killedCode = 137;

async function endIn({ docker }: ServicePlace, running: ServiceContainer[], name: string): Promise<ServiceEnd | null> {
  const one = running.find(({ facts }) => facts.name === name);
  if (!one) throw noService(name);
  const { State } = await one.container.inspect();
  if (State.Running) return null;
  const { SystemTime } = (await docker.info()) as { SystemTime?: string };
  const now = SystemTime === undefined ? Date.now() : Date.parse(SystemTime);
  return { fromOutside: State.ExitCode === killedCode && !State.OOMKilled, msAgo: now - Date.parse(State.FinishedAt) };
}

async function startIn({ docker }: ServicePlace, running: ServiceContainer[], name: string, argv: string[], signal: AbortSignal) {
  const one = running.find(({ facts }) => facts.name === name);
  if (!one) throw noService(name);
  return commandStream(docker, one.container.id, argv, signal);
}

async function readStateIn({ docker }: ServicePlace, running: ServiceContainer[], services: Services, name: string, options: StateOptions) {
  const one = running.find(({ facts }) => facts.name === name);
  if (!one) throw noService(name);
  const { state, disk_mb } = services[name] as Service;
  return readState(docker, one.container, { paths: state, disk_mb }, options);
}

/** One that has ended cannot be paused, nor one that is paused. */
function together(docker: Docker, running: ServiceContainer[]): Pick<RunningServices, "pause" | "resume" | "areAsNew"> {
  const isItsImage = async ({ facts }: ServiceContainer) => (await imageAt(docker, facts.image).inspect()).Id === facts.image_digest;
  const isAsNew = async (one: ServiceContainer) =>
    assertAlive(one)
      .then(() => isItsImage(one))
      .catch(() => false);
  const each = async (wasPaused: boolean, act: (container: Docker.Container) => Promise<unknown>) => {
    const of = async ({ container }: ServiceContainer) => {
      const { Running, Paused } = (await container.inspect()).State;
      if (Running && Paused === wasPaused) await act(container);
    };
    await Promise.all(running.map(of));
  };
  const areAsNew = async () => (await Promise.all(running.map(isAsNew))).every(Boolean);
  return { areAsNew, pause: () => each(false, (one) => pauseContainer(one)), resume: () => each(true, (one) => one.unpause()) };
}

type ServiceStart = Parameters<typeof startService>[1];

function begin(place: ServicePlace, order: ServiceStart, others: Map<string, StartingService>, signal: AbortSignal): StartingService {
  const waited = Object.entries(order.service.depends_on).map(([name, stage]) => others.get(name)?.[stage]);
  const started = Promise.all(waited).then(() => startNamed(place, order, signal));
  const ready = started.then((one) => untilServes(one, order.service, place.init_seconds, signal));
  // Both are awaited, and one of them later.
  started.catch(() => undefined);
  ready.catch(() => undefined);
  return { started, ready };
}

async function startNamed(place: ServicePlace, order: ServiceStart, signal: AbortSignal): Promise<ServiceContainer> {
  try {
    signal.throwIfAborted();
    return await startService(place, order, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const error = asAlidadeError(cause, "sandbox_unavailable");
    const param = `environment.services.${order.name}`;
    throw new AlidadeError(error.code, `The service ${order.name}: ${error.message}`, { cause, param });
  }
}

async function untilServes(one: ServiceContainer, { healthcheck }: Service, init_seconds: number, signal: AbortSignal): Promise<void> {
  const { check, start, words } = one;
  if (healthcheck !== "completed") return untilReady(one, check, check && start, signal, words);
  const over = performance.now() + init_seconds * 1000;
  while (!(await hasEnded(start, words))) {
    if (performance.now() > over) throw failure(`${words.who} did not complete within ${init_seconds} s (limits.init_seconds).`, words);
    await sleep(lookMs, undefined, { signal });
  }
}

/** One that ended with 0 and was not asked whether it is ready had only that to do. */
async function assertAlive({ check, start, words }: ServiceContainer): Promise<void> {
  if (!(await hasEnded(start, words)) || check === null) return;
  throw endedEarly(start, words);
}
