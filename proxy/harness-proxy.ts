/**
 * The proxy: harness-facing HTTP in, engine-facing HTTP out, a control listener beside it.
 *
 *     await using proxy = await HarnessProxy.start({ engine, store });
 *     const { session, key } = await proxy.openSession({ purpose: "train" });
 *     // OPENAI_BASE_URL=`${proxy.url}/v1`, OPENAI_API_KEY=key
 */
import { dialects } from "../dialects/index.ts";
import type { Engine, EngineFacts } from "../engines/index.ts";
import { AlidadeError, messageOf } from "../errors.ts";
import { reconstruct, type TrajectoryFacts } from "../reconstruct/index.ts";
import type { Policy, SessionSpec } from "../schema/session-log.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import type { Store } from "../store/index.ts";
import { ControlListener } from "./control-listener.ts";
import { HarnessListener } from "./harness-listener.ts";
import type { Session } from "./session.ts";
import { type OnError, Sessions } from "./sessions.ts";

export type ProxyOptions = {
  engine: Engine;
  store: Store;
  /** Written into every session's log. */
  version: string;
  host?: string;
  /** 0 takes a free one. */
  port?: number;
  /** Token of the control listener; none: there is no such listener. */
  controlToken?: string | null;
  controlPort?: number;
  policy?: Policy | null;
  /** Bring back the sessions of the store. It must have no other owner then: what is torn in its files is cut off. */
  rebuild?: boolean;
  /** What nobody can be told over HTTP. */
  onError?: OnError;
  signal?: AbortSignal;
};

export class HarnessProxy implements AsyncDisposable {
  readonly engine: Engine;
  readonly facts: EngineFacts;
  readonly sessions: Sessions;
  policy: Policy | null;
  url = "";
  controlUrl: string | null = null;
  readonly #listener: HarnessListener;
  #control: ControlListener | null = null;

  private constructor(options: ProxyOptions, facts: EngineFacts) {
    this.engine = options.engine;
    this.facts = facts;
    this.policy = options.policy ?? null;
    const onError = options.onError ?? tellOperator;
    this.sessions = new Sessions(options.store, options.version, onError);
    this.#listener = new HarnessListener(this.sessions, { engine: this.engine, facts, policy: () => this.policy, onError });
  }

  /** Probes the engine, brings back the sessions of the store where asked to, and listens. Throws `engine_unreachable`. */
  static async start(options: ProxyOptions): Promise<HarnessProxy> {
    const proxy = new HarnessProxy(options, await probe(options.engine, options.signal));
    try {
      if (options.rebuild) await proxy.sessions.rebuild();
      proxy.url = await proxy.#listener.listen(options.host ?? "127.0.0.1", options.port ?? 0);
      if (options.controlToken) {
        proxy.#control = new ControlListener(proxy, options.controlToken);
        proxy.controlUrl = await proxy.#control.listen("127.0.0.1", options.controlPort ?? 0);
      }
      return proxy;
    } catch (error) {
      await proxy[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Throws `engine_without_token_ids` for a training session at an engine that gives no ids or logprobs. */
  async openSession(spec: Partial<SessionSpec>): Promise<{ session: Session; key: string }> {
    if (spec.purpose === "train") this.assertTrainable();
    return this.sessions.open(spec);
  }

  /** Throws `engine_without_token_ids`, naming what would fix it. */
  assertTrainable(): void {
    if (this.facts.missing !== null)
      throw new AlidadeError("engine_without_token_ids", `nothing can be trained on what this engine returns: ${this.facts.missing}`);
  }

  /** Throws `not_found`. */
  session(id: string): Session {
    const session = this.sessions.get(id);
    if (!session) throw new AlidadeError("not_found", `no session is named "${id}"`);
    return session;
  }

  /** A connection that belongs to this session, whatever key it sends. */
  attach(session: Session, socket: Parameters<HarnessListener["attach"]>[1]): void {
    this.#listener.attach(session, socket);
  }

  /** Variables that point every SDK we know at this proxy with this key. */
  envOf(key: string, base: string = this.url): Record<string, string> {
    return Object.assign({}, ...dialects.map((dialect) => dialect.env(base, key))) as Record<string, string>;
  }

  /** The trajectory of a session as its log tells it now. */
  async trajectory(sessionId: string, facts: TrajectoryFacts = {}): Promise<Trajectory> {
    const entries = await this.sessions.store.read(sessionId);
    if (entries.length === 0) throw new AlidadeError("not_found", `no session is named "${sessionId}"`);
    return reconstruct(entries, facts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#control?.[Symbol.asyncDispose]();
    await this.#listener[Symbol.asyncDispose]();
    await this.sessions[Symbol.asyncDispose]();
  }
}

/** A cold engine compiles its first request (22 s were seen on a CPU); beyond this it hangs. */
const probeTimeoutMs = 120_000;

/** What the engine can do. Whatever answers there and is no inference server is named as such. */
async function probe(engine: Engine, signal: AbortSignal | undefined): Promise<EngineFacts> {
  const limit = AbortSignal.timeout(probeTimeoutMs);
  try {
    return await engine.probe(signal ? AbortSignal.any([signal, limit]) : limit);
  } catch (error) {
    if (signal?.aborted) throw new AlidadeError("cancelled", "stopped before the engine had answered", { cause: error });
    if (limit.aborted)
      throw new AlidadeError("engine_unreachable", `the engine at ${engine.baseUrl} gave no answer in ${probeTimeoutMs / 1000} s`);
    if (error instanceof AlidadeError) throw error;
    throw new AlidadeError(
      "engine_error",
      `what answers at ${engine.baseUrl} is no ${engine.name} server: is --engine its URL? (${messageOf(error).split("\n")[0]})`,
      { cause: error },
    );
  }
}

/** A failure with a code says all in its sentence; of any other the place matters too. */
function tellOperator(error: unknown, what: string): void {
  const text = error instanceof Error && !(error instanceof AlidadeError) ? (error.stack ?? error.message) : messageOf(error);
  process.stderr.write(`alidade: ${what}: ${text}\n`);
}
