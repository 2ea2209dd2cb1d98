/** A real proxy with its control listener in front of several scripted engines: `a`, `b` and so on. */

import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { vllm } from "../../../engines/vllm.ts";
import { type EngineSpec, HarnessProxy, type ProxyOptions } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../engines/scripted-engine.ts";
import { Client } from "./proxy-at.ts";

export type EnginesAt = AsyncDisposable & {
  proxy: HarnessProxy;
  /** By name. */
  engines: Record<string, ScriptedEngine>;
  /** What the operator was told. */
  told: string[];
  /** Accepts any model name, unless the specification forbids it. */
  open(spec?: Partial<SessionSpec>): Promise<Client>;
  control(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<{ status: number; body: Record<string, unknown> }>;
  /** How many calls each engine has sampled or refused. */
  calls(): Record<string, number>;
};

export const controlToken = "a token of the test";

export async function enginesAt(
  script: (engine: string, request: WireRequest, index: number) => ScriptedReply,
  specs: Record<
    string,
    Partial<EngineSpec> & {
      models_served?: string[];
      shift?: number;
      weightVersion?: string;
      root?: string | null;
      routing?: "told" | "wrong";
      support?: ScriptedEngine["support"];
      weightSpans?: ScriptedEngine["weightSpans"];
    }
  >,
  options: Partial<ProxyOptions> = {},
): Promise<EnginesAt> {
  await using scope = new AsyncDisposableStack();
  const engines: Record<string, ScriptedEngine> = {};
  const list: EngineSpec[] = [];
  for (const [name, { models_served, shift, weightVersion, root, routing, support, weightSpans, ...spec }] of Object.entries(specs)) {
    const engine = scope.use(await ScriptedEngine.start((request, index) => script(name, request, index)));
    engine.models = models_served ?? engine.models;
    engine.shift = shift ?? 0;
    engine.weightVersion = weightVersion ?? null;
    engine.root = root ?? null;
    engine.routing = routing ?? null;
    engine.support = support ?? null;
    engine.weightSpans = weightSpans ?? null;
    engines[name] = engine;
    const adapter = vllm.create({ baseUrl: engine.url, apiKey: null });
    scope.defer(() => adapter.close());
    list.push({ name, engine: adapter, ...spec });
  }
  const told: string[] = [];
  const proxy = scope.use(
    await HarnessProxy.start({
      engines: list,
      store: new MemoryStore(),
      version: "test",
      controlToken,
      onError: (error, what) => void told.push(`${what}: ${(error as Error).message}`),
      ...options,
    }),
  );
  const release = scope.move();
  return {
    proxy,
    engines,
    told,
    calls: () => Object.fromEntries(Object.entries(engines).map(([name, { requests }]) => [name, requests.length])),
    open: async (spec = {}) => {
      const { session, key } = await proxy.openSession({ any_model: true, ...spec });
      return new Client(proxy, session.id, key);
    },
    control: async (method, path, body, signal) => {
      const response = await fetch(proxy.controlUrl + path, {
        method,
        headers: { authorization: `Bearer ${controlToken}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}
