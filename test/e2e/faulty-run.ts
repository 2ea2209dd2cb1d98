/** One run of a real harness through the proxy, with relays that break on either side of it and a witness at the engine. */
import type { TestContext } from "node:test";
import type { LogEntry } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { engines } from "../../engines/registry.ts";
import { harnessNamed } from "../../harnesses/registry.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { type Fault, type RelayedRequest, startFaultRelay } from "../fakes/proxies/fault-relay.ts";
import { type RecordedExchange, startRecordingRelay } from "../fakes/proxies/recording-relay.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { type Ended, runCommand, temporaryPlace, writeBelow } from "../harness/run-harness.ts";
import { type PersistentHarness, persistent } from "../harness/with-retries.ts";

/** The harness works for this many turns: two commands and a last word. */
export const turns = 3;
/** The turn at which faults strike: it has a history, and something comes after it. */
export const struck = 1;

export type FaultyRunOptions = {
  harness: PersistentHarness;
  spec: Partial<SessionSpec>;
  idleMs?: number | null;
  /** Asked for each request of the struck turn, `nth` of them from 0. */
  atEngine?: (nth: number, moments: Moments) => Fault | null;
  atHarness?: (nth: number, moments: Moments) => Fault | null | Promise<Fault | null>;
  /** What the engine waits for while it samples the struck turn. */
  holdHeaders?: (moments: Moments) => Promise<unknown>;
  holdEnd?: (moments: Moments) => Promise<unknown>;
};

/** Things that a fault may wait for. */
export type Moments = {
  /** The engine has the struck turn's request. */
  engineAsked: Promise<void>;
  /** The harness has sent the struck turn's request a second time. */
  askedAgain: Promise<void>;
  /** The log shows an entry of which this holds. */
  logged(test: (entry: LogEntry) => boolean): Promise<void>;
};

export type FaultyRun = {
  ended: Ended;
  /** What the harness itself says of its end. */
  failed: boolean;
  trajectory: Trajectory;
  entries: LogEntry[];
  exchanges: RecordedExchange[];
  /** Requests of the struck turn that the harness sent. */
  asked: RelayedRequest[];
  /** Times that the engine was asked for the struck turn. */
  sampled: number;
  unseen: unknown[];
};

/** Null where the pack is not installed. */
export async function faultyRun(t: TestContext, options: FaultyRunOptions): Promise<FaultyRun | null> {
  const pack = await installedPack(t, harnessNamed(options.harness));
  if (pack === null) return null;
  await using scope = new AsyncDisposableStack();
  const place = scope.use(await temporaryPlace({ "notes.txt": "nothing\n" }));
  const asked = Promise.withResolvers<void>();
  const askedAgain = Promise.withResolvers<void>();
  const unseen: unknown[] = [];
  const store = new MemoryStore();
  let sessionId = "";
  const moments: Moments = {
    engineAsked: asked.promise,
    askedAgain: askedAgain.promise,
    async logged(holds) {
      while (!t.signal.aborted && !(await store.read(sessionId)).some(holds)) await new Promise((resolve) => setTimeout(resolve, 10));
    },
  };
  const engine = scope.use(
    await ScriptedEngine.start((request, index) => {
      const reply = scriptOf(options.harness, request, index);
      if (request.probe || turnOf(request.messages) !== struck) return reply;
      asked.resolve();
      return { ...reply, before: options.holdHeaders?.(moments), beforeEnd: options.holdEnd?.(moments) };
    }),
  );
  const witness = scope.use(await startRecordingRelay(engine.url));
  let struckTries = 0;
  const breaker = scope.use(
    await startFaultRelay(witness.url, (request) => {
      if (request.body.stream !== true || turnOf(request.body.messages) !== struck) return null;
      return options.atEngine?.(struckTries++, moments) ?? null;
    }),
  );
  const adapter = engines[0]?.create({ baseUrl: breaker.url, apiKey: null });
  if (!adapter) throw new Error("no engine is registered");
  scope.defer(() => adapter.close());
  const proxy = scope.use(
    await HarnessProxy.start({ engine: adapter, store, version: "test", onError: (error, what) => void unseen.push([what, error]) }),
  );
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", ...options.spec });
  sessionId = session.id;
  const struckRequests: RelayedRequest[] = [];
  const front = scope.use(
    await startFaultRelay(proxy.url, (request) => {
      if (harnessTurn(request.body) !== struck) return null;
      if (struckRequests.push(request) > 1) askedAgain.resolve();
      return options.atHarness?.(struckRequests.length - 1, moments) ?? null;
    }),
  );
  const { home, workdir } = place;
  const launch = persistent[options.harness].launch(
    { instruction: "Work.", baseUrl: front.url, apiKey: key, model: "scripted", home, workdir, pack: pack.folder, contextWindow: 100_000 },
    options.idleMs ?? null,
  );
  await writeBelow(home, launch.files);
  const ended = await runCommand(launch.argv, { cwd: workdir, env: { PATH: "/usr/bin:/bin", ...launch.env }, signal: t.signal });
  await session.running.idle();
  return {
    ended,
    failed: harnessNamed(options.harness).end(ended).failed,
    trajectory: await proxy.trajectory(sessionId),
    entries: await store.read(sessionId),
    exchanges: witness.exchanges,
    asked: struckRequests,
    sampled: engine.requests.filter((request) => turnOf(request.messages) === struck).length,
    unseen,
  };
}

/** Each sample says which it is, so that what the harness went on with can be told. */
export function scriptOf(harness: PersistentHarness, request: WireRequest, index: number): ScriptedReply {
  const turn = turnOf(request.messages);
  if (turn >= turns - 1) return { text: `All done, sample ${index}.` };
  const { name, arguments: args } = persistent[harness].shell(`echo step-${turn} sample-${index}`);
  return { text: `Step ${turn}, sample ${index}.`, tool_calls: [{ id: `engine${index}`, name, arguments: JSON.stringify(args) }] };
}

/** How many turns the model has had, by the messages of an engine's request. */
export function turnOf(messages: unknown): number {
  return Array.isArray(messages) ? messages.filter((message) => message.role === "assistant").length : 0;
}

/** The same of a harness's request, in any dialect: each turn of the script but the last calls one tool. */
function harnessTurn(body: Record<string, unknown>): number {
  const text = JSON.stringify(body.messages ?? body.input ?? body.contents ?? "");
  return (text.match(/"role":"tool"|"type":"function_call_output"|"type":"tool_result"|"functionResponse":/g) ?? []).length;
}
