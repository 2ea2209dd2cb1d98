/** A real proxy in front of a scripted engine, with a store in memory: what most tests of the proxy stand on. */

import type { LogEntry } from "../../../base/schema/session-log.ts";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { engines } from "../../../engines/registry.ts";
import { HarnessProxy, type ProxyOptions } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../engines/scripted-engine.ts";
import { until } from "../machine/until.ts";

export type ProxyAt = AsyncDisposable & {
  proxy: HarnessProxy;
  engine: ScriptedEngine;
  /** What the proxy could not tell over HTTP: tests end by asking that it is empty. */
  unseen: unknown[];
  /** Accepts any model name, unless the specification forbids it. */
  open(spec?: Partial<SessionSpec>): Promise<Client>;
};

export async function proxyAt(
  script: (request: WireRequest, index: number) => ScriptedReply,
  options: Partial<ProxyOptions> = {},
): Promise<ProxyAt> {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await ScriptedEngine.start(script));
  const unseen: unknown[] = [];
  const adapter = engines[0]?.create({ baseUrl: engine.url, apiKey: null });
  if (!adapter) throw new Error("no engine is registered");
  scope.defer(() => adapter.close());
  const proxy = scope.use(
    await HarnessProxy.start({
      engine: adapter,
      store: new MemoryStore(),
      version: "test",
      onError: (error, what) => void unseen.push([what, error]),
      ...options,
    }),
  );
  const release = scope.move();
  return {
    proxy,
    engine,
    unseen,
    open: async (spec = {}) => {
      const { session, key } = await proxy.openSession({ any_model: true, ...spec });
      return new Client(proxy, session.id, key);
    },
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

export class Client {
  readonly proxy: HarnessProxy;
  readonly sessionId: string;
  readonly key: string;

  constructor(proxy: HarnessProxy, sessionId: string, key: string) {
    this.proxy = proxy;
    this.sessionId = sessionId;
    this.key = key;
  }

  chat(body: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
    return this.post("/v1/chat/completions", { model: "any", ...body }, signal);
  }

  post(path: string, body: unknown, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.proxy.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${this.key}`, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    });
  }

  /** The assistant message of a non-streamed chat answer. */
  async say(messages: unknown[], more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const response = await this.chat({ messages, ...more });
    const body = (await response.json()) as { choices?: { message: Record<string, unknown> }[]; error?: unknown };
    if (!body.choices?.[0]) throw new Error(`no answer: ${JSON.stringify(body)}`);
    return body.choices[0].message;
  }

  entries() {
    return this.proxy.sessions.store.read(this.sessionId);
  }

  /** Waits until the session's log has an entry of this type. */
  async logged(type: LogEntry["type"]): Promise<void> {
    await until(async () => (await this.entries()).some((entry) => entry.type === type));
  }

  /** Waits until the proxy has so many tokens of the calls that run. */
  async sampled(count: number): Promise<void> {
    const { running } = this.proxy.session(this.sessionId);
    await until(() => running.inFlight().reduce((sum, { sampledTokens }) => sum + sampledTokens, 0) >= count);
  }

  async settled() {
    await this.proxy.session(this.sessionId).running.idle();
  }

  async trajectory() {
    await this.settled();
    return this.proxy.trajectory(this.sessionId);
  }
}
