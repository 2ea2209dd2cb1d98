/**
 * The client of `alidade service` for programs in TypeScript, as `clients/python` is for Python.
 *
 *     await using service = ServiceClient.of("runs/service");
 *     const run = await service.set("grpo-17", { samples: 8 });
 *     await run.submit([{ group_key: "step-0", task: "fix-slug" }]);
 *     for await (const { cursor, rows } of run.groups({ payload: "rows", after: saved.cursor })) await train(rows, cursor);
 *
 * Each request may be sent twice and counts once, so a service that is away is waited for, and a trainer that is started again
 * goes on from the cursor in its checkpoint.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent, Response } from "undici";
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import type { Health, PauseBody, PolicyBody } from "../../proxy/control/index.ts";
import type { NodeState, SetSpec, SetState } from "../ledger/index.ts";
import type { NamedTask } from "../service-parts.ts";
import { ask, connectionsTo, type ServiceAddress, type ServiceQuestion } from "./ask.ts";
import { RolloutSet } from "./rollout-set.ts";
import { wholeLines } from "./whole-lines.ts";

export type ClientOptions = {
  /** Seconds that a service is waited for which cannot be reached, or whose answers break off. */
  patience?: number;
  /** Is told, once for each request, why the service is waited for. */
  onAway?: (error: Error) => void;
  /** PEM of the certificate that an https address is trusted by; those that Node trusts where left out. */
  ca?: string | null;
};

/** What loads new weights between the pause and their name. */
export type WeightUpdate = Partial<z.input<typeof PauseBody>> & Pick<z.input<typeof PolicyBody>, "version" | "step" | "engine_version">;

const Kept = z.object({ url: z.string(), token: z.string().nullable() });
const patienceSeconds = 600;
const firstPauseMs = 100;
const longestPauseMs = 5_000;

export class ServiceClient implements AsyncDisposable {
  readonly #address: () => Promise<ServiceAddress>;
  readonly #patienceMs: number;
  readonly #onAway: (error: Error) => void;
  readonly #agent: Agent;

  private constructor(
    address: () => Promise<ServiceAddress>,
    { patience = patienceSeconds, onAway = () => undefined, ca = null }: ClientOptions,
  ) {
    this.#address = address;
    this.#patienceMs = patience * 1000;
    this.#onAway = onAway;
    this.#agent = connectionsTo({ ca });
  }

  static at(url: string, token: string, options: ClientOptions = {}): ServiceClient {
    const address = { url: url.replace(/\/+$/, ""), token, ca: options.ca ?? null };
    return new ServiceClient(async () => address, options);
  }

  /** By the service.json in the folder of a service on this machine, read again after each restart. `token`: where it holds none. */
  static of(folder: string, options: ClientOptions & { token?: string } = {}): ServiceClient {
    const address = async () => {
      const { url, token } = Kept.parse(readJson(await readFile(join(folder, "service.json"), "utf8")));
      return { url, token: options.token ?? token ?? "", ca: options.ca ?? null };
    };
    return new ServiceClient(address, options);
  }

  /** By an address that is asked for before each request, such as that of a service that is started again elsewhere. */
  static by(address: () => Promise<ServiceAddress>, options: ClientOptions = {}): ServiceClient {
    return new ServiceClient(address, options);
  }

  /** The set of that key, made where it is not there yet. Throws 409 where it has another specification. */
  async set(key: string, spec: Partial<SetSpec> = {}, signal?: AbortSignal): Promise<RolloutSet> {
    const state = await this.ask<SetState>({ method: "PUT", path: `/sets/${encodeURIComponent(key)}`, body: spec }, signal);
    return new RolloutSet(this, state);
  }

  /** The set of that id. Throws `not_found`. */
  async setOf(id: string, signal?: AbortSignal): Promise<RolloutSet> {
    return new RolloutSet(this, await this.ask<SetState>({ path: `/sets/${encodeURIComponent(id)}` }, signal));
  }

  async sets(signal?: AbortSignal): Promise<SetState[]> {
    return (await this.ask<{ sets: SetState[] }>({ path: "/sets" }, signal)).sets;
  }

  /** Those that may be submitted by name, each with the hash of its content. */
  async tasks(signal?: AbortSignal): Promise<NamedTask[]> {
    return (await this.ask<{ tasks: NamedTask[] }>({ path: "/tasks" }, signal)).tasks;
  }

  health(signal?: AbortSignal): Promise<Health & { nodes: NodeState[] }> {
    return this.ask({ path: "/health" }, signal);
  }

  async nodes(signal?: AbortSignal): Promise<NodeState[]> {
    return (await this.ask<{ nodes: NodeState[] }>({ path: "/nodes" }, signal)).nodes;
  }

  /**
   * Shuts the gates of all engines, runs `load`, which loads the weights, names them, and opens the gates. Where `load` throws,
   * the gates stay shut, because only the trainer knows what the engines hold then; called again it goes on with the same fence.
   */
  async weights(update: WeightUpdate & { fence?: string }, load: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    const { version, step = null, engine_version, fence = "trainer", timeout_seconds = 600, ...pause } = update;
    const shut = { method: "POST", path: "/control/pause", body: { ...pause, fence, timeout_seconds }, seconds: timeout_seconds } as const;
    await this.ask(shut, signal);
    await load();
    await this.ask({ method: "PUT", path: "/control/policy", body: { fence, version, step, engine_version } }, signal);
    await this.ask({ method: "POST", path: "/control/resume", body: { fence } }, signal);
  }

  /** The answer's JSON. The types of answers are this version's own: a service of another one may say more or less. */
  async ask<Answer>(question: ServiceQuestion, signal?: AbortSignal): Promise<Answer> {
    return readJson(await this.#asked(question, (answer) => answer.text(), signal)) as Answer;
  }

  /**
   * The lines of an answer in JSON. Ends early where the answer breaks off behind a line; where it breaks off before the first one,
   * it is asked for again. So no line means that there is none.
   */
  async *lines<Line>(question: ServiceQuestion, signal?: AbortSignal): AsyncGenerator<Line> {
    const { first, lines } = await this.#asked(question, begunLines, signal);
    await using _ = lines;
    for (let line = first; !line.done; line = await lines.next().catch(() => noLine)) yield readJson(line.value) as Line;
    signal?.throwIfAborted();
  }

  /** Tries again, with growing pauses, while the service is away or its answer breaks off. */
  async #asked<Answer>(question: ServiceQuestion, read: (answer: Response) => Promise<Answer>, signal?: AbortSignal): Promise<Answer> {
    const until = performance.now() + this.#patienceMs;
    for (let pause = firstPauseMs; ; pause = Math.min(2 * pause, longestPauseMs)) {
      try {
        return await ask(await this.#address(), question, this.#agent, read, signal);
      } catch (error) {
        signal?.throwIfAborted();
        if (!isAway(error) || performance.now() > until) throw error;
        if (pause === firstPauseMs) this.#onAway(error as Error);
        await sleep(pause, undefined, signal && { signal }).catch(() => undefined);
        signal?.throwIfAborted();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}

const noLine = { done: true, value: undefined } as const;

async function begunLines({ body }: Response) {
  const lines = wholeLines(body ?? []);
  return { lines, first: await lines.next() };
}

/** It may come: it does not answer (502 or 504 of a proxy, 503), has no room (503, 429), or has not written where it listens. */
function isAway(error: unknown): boolean {
  if (!(error instanceof AlidadeError)) return (error as { code?: unknown }).code === "ENOENT";
  return [429, 502, 503, 504].includes(error.status);
}
