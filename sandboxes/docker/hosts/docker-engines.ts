/**
 * The engines that sandboxes are spread over. A new sandbox goes where its memory fits, then where its image is, then where
 * most is free. An engine that does not answer gets no new ones; what is under way at it fails, so that it is tried again
 * at another.
 */
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { SharedWork } from "../../../base/host/shared-work.ts";
import type { EngineAddress } from "../../../base/schema/container-engine.ts";
import { dockerClient, forgetUnreachable, isNotFound } from "../client.ts";
import { engineTraits } from "../engine-traits.ts";
import { type ImageOrder, imageNameOf } from "../images/environment-image.ts";
import { hasImage } from "../images/has-image.ts";
import { imageAt } from "../images/image-at.ts";
import { copyImage } from "./copy-image.ts";
import { connectEngine, endConnections, hello } from "./engine-connection.ts";

export type DockerEngine = {
  /** Its address; null: the one engine of this machine. */
  name: string | null;
  docker: Docker;
};

/** A place for a sandbox, until it is given back. */
export type EnginePlace = DockerEngine & { release: () => void };

type Member = DockerEngine & {
  /** MiB that its sandboxes of this process may take. */
  taken: number;
  sandboxes: number;
  /** MiB; null until it was asked. */
  memory: number | null;
  /** Times of `performance.now()`; `problem` is what it last failed with. */
  answered: number;
  asked: number;
  problem: string | null;
};

/** An answer that old is good enough for a placement. */
const freshMs = 5_000;
/** A loaded engine answers within seconds. One that is cut off would hold its requests for a quarter of an hour. */
const usualSilenceMs = 30_000;

export class DockerEngines {
  readonly #members: Member[];
  /** Image name -> content id: all sandboxes of a name are made from the same image. */
  readonly #ids = new Map<string, string>();
  readonly #copies = new Map<string, SharedWork<void>>();
  readonly #silenceMs: number;
  #watch: NodeJS.Timeout | null = null;
  #looking = false;

  /**
   * No addresses: the engine of this machine, as `DOCKER_HOST` and the known sockets have it. `silenceMs`: how long one of
   * the list may be silent until what is under way at it is given up.
   */
  constructor(addresses: readonly EngineAddress[], silenceMs: number = usualSilenceMs) {
    this.#silenceMs = silenceMs;
    const fresh = {
      taken: 0,
      sandboxes: 0,
      memory: null,
      answered: Number.NEGATIVE_INFINITY,
      asked: Number.NEGATIVE_INFINITY,
      problem: null,
    };
    this.#members = addresses.map((address) => ({ ...fresh, name: address.host, docker: connectEngine(address) }));
  }

  /** Those that answer, in the order of the list. Throws `sandbox_unavailable` where none does. */
  async alive(signal: AbortSignal): Promise<DockerEngine[]> {
    if (this.#members.length === 0) return [{ name: null, docker: await limitedClient(signal) }];
    await Promise.all(this.#members.map((member) => this.#ask(member, freshMs, signal)));
    const alive = this.#members.filter(({ problem }) => problem === null);
    if (alive.length > 0) return alive;
    throw new AlidadeError("sandbox_unavailable", `No Docker engine of the list can be used: ${this.silent.join("; ")}.`);
  }

  /** Those that do not answer, with their reasons, as far as they were asked. */
  get silent(): string[] {
    return this.#members.flatMap(({ name, problem }) => (problem === null ? [] : [`${name}: ${problem}`]));
  }

  /** Asks anew. */
  async askAgain(signal: AbortSignal): Promise<DockerEngine[]> {
    await forgetUnreachable(signal);
    for (const member of this.#members) member.asked = Number.NEGATIVE_INFINITY;
    return this.alive(signal);
  }

  /** From now on each sandbox of that image is made from this content. */
  fixImage(name: string, id: string): void {
    this.#ids.set(name, id);
  }

  /** An engine for a new sandbox, which has the image where another one has it. */
  async place(order: ImageOrder & { memory_mb: number }, signal: AbortSignal): Promise<EnginePlace> {
    const alive = await this.alive(signal);
    if (this.#members.length === 0) return { ...(alive[0] as DockerEngine), release: () => undefined };
    const name = await imageNameOf(order);
    const found = await Promise.all((alive as Member[]).map(async (member) => ({ member, id: await this.#imageAt(member, name) })));
    const id = this.#ids.get(name) ?? found.find((one) => one.id)?.id ?? null;
    if (id !== null) this.#ids.set(name, id);
    const fitting = found.filter((one) => one.id === null || one.id === id);
    const [best] = fitting.toSorted((a, b) => rank(b.member, b.id, order.memory_mb) - rank(a.member, a.id, order.memory_mb));
    if (best === undefined)
      throw new AlidadeError(
        "sandbox_unavailable",
        `No Docker engine that answers may make sandboxes of ${name}: they have another image of that name.`,
      );
    const placed = this.#lease(best.member, order.memory_mb);
    try {
      const source = found.find((one) => one.id === id && id !== null && one !== best);
      if (best.id === null && source) await this.bring(source.member, best.member, name, signal);
      return placed;
    } catch (error) {
      placed.release();
      throw error;
    }
  }

  /** Copies an image unless it is there; once, however many ask. */
  async bring(from: DockerEngine, to: DockerEngine, image: string, signal: AbortSignal): Promise<void> {
    const key = `${to.name} ${image}`;
    const work = this.#copies.get(key) ?? new SharedWork<void>();
    this.#copies.set(key, work);
    await work.join(signal, async (stop) => {
      if (!(await hasImage(to.docker, image))) await copyImage(from.docker, to.docker, image, stop);
    });
  }

  #lease(member: Member, memory_mb: number): EnginePlace {
    member.taken += memory_mb;
    member.sandboxes += 1;
    this.#watch ??= setInterval(() => void this.#look(), Math.min(freshMs, this.#silenceMs / 3)).unref();
    let isOut = false;
    const release = () => {
      if (isOut) return;
      isOut = true;
      member.taken -= memory_mb;
      member.sandboxes -= 1;
      // Perhaps because it is gone.
      member.asked = Number.NEGATIVE_INFINITY;
      if (this.#watch === null || this.#members.some(({ sandboxes }) => sandboxes > 0)) return;
      clearInterval(this.#watch);
      this.#watch = null;
    };
    return { name: member.name, docker: member.docker, release };
  }

  /** Requests to an engine that is silent for long fail, and with them their rollouts. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const busy = this.#members.filter(({ sandboxes }) => sandboxes > 0);
    const look = async (member: Member) => {
      await this.#ask(member, 0);
      if (member.problem !== null && performance.now() - member.answered > this.#silenceMs) endConnections(member.docker);
    };
    await Promise.all(busy.map(look));
    this.#looking = false;
  }

  async #ask(member: Member, freshFor: number, signal?: AbortSignal): Promise<void> {
    if (performance.now() - member.asked < freshFor) return;
    try {
      await hello(member.docker, signal);
      member.memory ??= Math.floor((((await member.docker.info()) as { MemTotal?: number }).MemTotal ?? 0) / 1024 ** 2);
      member.problem = (await engineTraits(member.docker)).unusable;
      member.answered = performance.now();
    } catch (error) {
      signal?.throwIfAborted();
      member.problem = messageOf(error);
    }
    member.asked = performance.now();
  }

  /** null: it has none of that name, or does not answer any more. */
  async #imageAt(member: Member, name: string): Promise<string | null> {
    try {
      return (await imageAt(member.docker, name).inspect()).Id;
    } catch (error) {
      if (!isNotFound(error)) member.problem = messageOf(error);
      return null;
    }
  }
}

async function limitedClient(signal: AbortSignal): Promise<Docker> {
  const docker = await dockerClient(signal);
  const { unusable } = await engineTraits(docker);
  if (unusable === null) return docker;
  throw new AlidadeError("sandbox_unavailable", `The container engine cannot be used: ${unusable}.`);
}

/** Higher is better: room for it, then its image, then what is free. All of them in one number. */
function rank({ memory, taken, problem }: Member, id: string | null, wanted: number): number {
  const free = (memory ?? 0) - taken;
  const fits = free >= wanted ? 4 : 0;
  const has = id === null ? 0 : 2;
  return problem === null ? fits + has + free / Math.max(1, memory ?? 1) : Number.NEGATIVE_INFINITY;
}
