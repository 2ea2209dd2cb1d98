/**
 * The proxy: harness-facing HTTP in, engine-facing HTTP out, a control listener beside it.
 *
 *     await using proxy = await HarnessProxy.start({ engine, store });
 *     const { session, key } = await proxy.openSession({ purpose: "train" });
 *     // OPENAI_BASE_URL=`${proxy.url}/v1`, OPENAI_API_KEY=key
 */

import { AlidadeError, messageOf } from "../base/errors.ts";
import type { Policy } from "../base/schema/policy.ts";
import type { RewardComponent } from "../base/schema/reward-component.ts";
import type { NewSession } from "../base/schema/session-spec.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { Watcher } from "../base/schema/watcher.ts";
import type { Network } from "../base/wire/network.ts";
import type { MetricFamily } from "../base/wire/prometheus-text.ts";
import type { Engine, EngineFacts } from "../engines/index.ts";
import { reconstruct, type TrajectoryFacts } from "../reconstruct/index.ts";
import { Continuity } from "./continuity/continuity.ts";
import { ControlListener } from "./control/control-listener.ts";
import type { Controlled } from "./control/controlled.ts";
import { dialects } from "./dialects/index.ts";
import { Bounds } from "./http/bounds.ts";
import { type ClientTimeouts, HarnessListener } from "./http/harness-listener.ts";
import type { TlsPair } from "./http/tls-files.ts";
import { EnginePool } from "./pool/engine-pool.ts";
import { assertTrainable, type EngineSpec } from "./pool/engine-slot.ts";
import type { EngineRoute } from "./pool/routes.ts";
import { preferPolicy } from "./pool/serving.ts";
import { WeightFences } from "./pool/weight-fence.ts";
import { cutAtDeath } from "./replay/cut.ts";
import type { SessionRecording } from "./replay/recording.ts";
import { Replay } from "./replay/replay.ts";
import { assertBuffered } from "./sandboxed/buffered-only.ts";
import { assertDialects } from "./sandboxed/own-dialects.ts";
import type { AttemptCounting } from "./session/rollout-attempts.ts";
import type { Session } from "./session/session.ts";
import { type OnError, type ResumedAs, Sessions } from "./session/sessions.ts";
import { type Store, VocabularyStore } from "./store/index.ts";

export type ProxyOptions = {
  /** The one engine, under its kind's name; or several under names of their own. None: they come over the control listener. */
  engine?: Engine;
  engines?: EngineSpec[];
  /** Rules that choose the engines of a call; the first rule that fits decides. */
  routes?: readonly EngineRoute[];
  store: Store;
  /** Folder for texts of sampled tokens, which has no other writer; absent: they are not kept. */
  vocabulary?: string;
  /** Written into every session's log. */
  version: string;
  host?: string;
  /** 0 takes a free one. */
  port?: number;
  /** The harnesses' listener speaks HTTPS then; the control listener stays on loopback without. */
  tls?: TlsPair | undefined;
  /** Token of the control listener; none: there is no such listener. */
  controlToken?: string | null;
  controlPort?: number;
  /** The policy of every engine without a policy of its own. */
  policy?: Policy | null;
  /** A call waits so long for the end of a weight update. */
  pauseWaitSeconds?: number;
  /** A pause is alarming after this, and again and again until it ends. */
  pauseAlarmSeconds?: number;
  /** How often a waiting stream is shown a sign of life. */
  keepAliveMs?: number;
  /** What one sandboxed session may take of the proxy. */
  bounds?: Partial<Bounds>;
  /** How long a client may take to send its request. */
  clientTimeouts?: Partial<ClientTimeouts>;
  /** Where images of sandboxed sessions are fetched from; absent: the public internet. */
  network?: Network;
  /** Bring back the sessions of the store. It must have no other owner then: what is torn in its files is cut off. */
  rebuild?: boolean;
  /** Is told of each call whose end is in the log. */
  watcher?: Pick<Watcher, "call"> | undefined;
  /** Figures of the process around it: the control listener serves them with its own. */
  families?: (() => MetricFamily[]) | undefined;
  /** Called with failures that no HTTP answer can carry. */
  onError?: OnError;
  signal?: AbortSignal;
};

export class HarnessProxy implements Controlled, AsyncDisposable {
  readonly pool: EnginePool;
  readonly fences: WeightFences;
  readonly sessions: Sessions;
  readonly families: () => MetricFamily[];
  url = "";
  controlUrl: string | null = null;
  readonly #listener: HarnessListener;
  readonly #vocabulary: VocabularyStore | undefined;
  #control: ControlListener | null = null;

  private constructor(options: ProxyOptions) {
    const onError = options.onError ?? tellOperator;
    this.sessions = new Sessions(options.store, options.version, onError);
    const { routes, pauseWaitSeconds, pauseAlarmSeconds, keepAliveMs } = options;
    this.families = options.families ?? (() => []);
    this.pool = new EnginePool({
      onError,
      ...(routes && { routes }),
      ...(pauseWaitSeconds !== undefined && { pauseWaitSeconds }),
    });
    this.fences = new WeightFences(this.pool, { alarmSeconds: pauseAlarmSeconds, onError });
    if (options.vocabulary !== undefined) this.#vocabulary = new VocabularyStore(options.vocabulary, onError);
    this.#listener = new HarnessListener(
      this.sessions,
      {
        pool: this.pool,
        continuity: new Continuity(),
        network: options.network,
        vocabulary: this.#vocabulary,
        keepAliveMs,
        watcher: options.watcher,
        onError,
      },
      Bounds.parse(options.bounds ?? {}),
      options.clientTimeouts,
      options.tls,
    );
  }

  /** The first engine. Throws `engine_unreachable` where there is none. */
  get engine(): Engine {
    return this.pool.first.engine;
  }

  /** What the first engine can do. */
  get facts(): EngineFacts {
    return this.pool.facts;
  }

  /** The policy of the first engine; null when none was named. */
  get policy(): Policy | null {
    return preferPolicy(this.pool.slots)[0]?.policy ?? null;
  }

  /** Probes the engines, restores the sessions of the store on request, and listens. Throws `engine_unreachable`. */
  static async start(options: ProxyOptions): Promise<HarnessProxy> {
    const proxy = new HarnessProxy(options);
    try {
      await proxy.#addEngines(options);
      if (options.rebuild) await proxy.sessions.rebuild();
      proxy.url = await proxy.#listener.listen(options.host ?? "127.0.0.1", options.port ?? 0);
      if (options.controlToken) {
        proxy.#control = new ControlListener(proxy, options.controlToken, options.version);
        proxy.controlUrl = await proxy.#control.listen("127.0.0.1", options.controlPort ?? 0);
      }
      return proxy;
    } catch (error) {
      await proxy[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Without `attempt` the session is its rollout's next one. Throws `engine_without_token_ids` for a training session at an
   * engine that gives no ids or logprobs, and `request_invalid` for a dialect that there is not, a
   * model that no engine serves and a live sandbox, and (409) where the rollout has this attempt (and member) already. `counting`:
   * "caller" where the caller gives each attempt's number once, so that the proxy's memory does not grow with the rollouts.
   */
  async openSession(spec: Partial<NewSession>, counting: AttemptCounting = "here"): Promise<{ session: Session; key: string }> {
    if (spec.purpose === "train") this.assertTrainable();
    assertDialects(spec);
    assertBuffered(spec);
    await this.pool.assertServes(spec);
    return this.sessions.open(spec, counting);
  }

  /**
   * Goes on with the session of a process that died, whose log holds finished calls: those are given again where its harness asks
   * for them. Throws as `openSession` does, and what is wrong with the log.
   */
  async resumeSession(id: string, as: ResumedAs): Promise<{ session: Session; recording: SessionRecording }> {
    const resumed = await this.sessions.resume(id, as);
    const { session, recording } = resumed;
    try {
      if (session.spec.purpose === "train") this.assertTrainable();
      await this.pool.assertServes(session.spec);
    } catch (error) {
      await this.sessions.close(session, messageOf(error));
      throw error;
    }
    session.replay = new Replay({ recording, cut: cutAtDeath(recording), after: "sample", words: "go_on", isOwn: true });
    return resumed;
  }

  /** Throws `engine_without_token_ids`, naming what would fix it. */
  assertTrainable(): void {
    if (preferPolicy(this.pool.slots).every((slot) => slot.facts.missing !== null)) assertTrainable(this.facts);
  }

  /** By its id or that of its rollout. Throws `not_found`. */
  session(name: string): Session {
    return this.sessions.named(name);
  }

  /** Writes a late reward, also of a session that was deleted from memory: its log takes it. Throws `not_found`. */
  async reward(
    name: string,
    reward: number | null,
    components: Record<string, number | null>,
    scopedComponents: RewardComponent[] = [],
  ): Promise<number> {
    const id = this.idOf(name);
    return this.sessions.visit(id, async (session) => {
      if (!session) throw new AlidadeError("not_found", `no session is named "${id}"`);
      return session.reward(reward, components, scopedComponents);
    });
  }

  /** A session that is only in the store has no other name than its id. */
  idOf(name: string): string {
    try {
      return this.sessions.named(name).id;
    } catch (error) {
      if (error instanceof AlidadeError && error.code === "not_found") return name;
      throw error;
    }
  }

  /** Marks a connection as this session's, with any key. */
  attach(session: Session, socket: Parameters<HarnessListener["attach"]>[1]): void {
    this.#listener.attach(session, socket);
  }

  /** The session's connections reach these tools at `/mcp/<server>`. */
  offerTools(session: Session, relay: Parameters<HarnessListener["offerTools"]>[1]): void {
    this.#listener.offerTools(session, relay);
  }

  /** Variables that point every SDK we know at this proxy with this key. */
  envOf(key: string, base: string = this.url): Record<string, string> {
    return Object.assign({}, ...dialects.map((dialect) => dialect.env(base, key))) as Record<string, string>;
  }

  /** The trajectory of a session from its current log. */
  async trajectory(name: string, facts: TrajectoryFacts = {}): Promise<Trajectory> {
    const sessionId = this.idOf(name);
    const entries = await this.sessions.store.read(sessionId);
    if (entries.length === 0) throw new AlidadeError("not_found", `no session is named "${sessionId}"`);
    return reconstruct(entries, facts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#control?.[Symbol.asyncDispose]();
    await this.#listener[Symbol.asyncDispose]();
    await this.sessions[Symbol.asyncDispose]();
    await this.#vocabulary?.[Symbol.asyncDispose]();
    this.fences[Symbol.dispose]();
    await this.pool[Symbol.asyncDispose]();
  }

  async #addEngines({ engine, engines = [], policy = null, signal }: ProxyOptions): Promise<void> {
    const specs = [...(engine ? [{ name: engine.name, engine }] : []), ...engines];
    // One by one, so that the first engine stays the first: concurrent probes would finish in any order.
    for (const spec of specs) await this.pool.add({ policy, ...spec }, { signal });
  }
}

function tellOperator(error: unknown, what: string): void {
  process.stderr.write(`alidade: ${failureText(error, what)}\n`);
}

/** A failure with a code says all in its sentence; of any other the place matters too. */
export function failureText(error: unknown, what: string): string {
  const text = error instanceof Error && !(error instanceof AlidadeError) ? (error.stack ?? error.message) : messageOf(error);
  return `${what}: ${text}`;
}
