/**
 * A process of the simulation: the service's listener, nodes, or both. Ledger, leases, claims, gates and fences are the real
 * ones; an attempt is a wait, and its result a row like that of a real one. Each node has connections of its own to Postgres, as
 * a machine has.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { engineNamed } from "../../engines/registry.ts";
import { EnginePool } from "../../proxy/pool/engine-pool.ts";
import { WeightFences } from "../../proxy/pool/weight-fence.ts";
import type { ProgressEvent } from "../../rollouts/index.ts";
import { FolderBlobs } from "../../service/blobs/index.ts";
import { ServiceListener } from "../../service/index.ts";
import { type Claim, type Ledger, PostgresLedger, SqliteLedger, watchNodes } from "../../service/ledger/index.ts";
import { ClaimLoop, type NodeEnd, type Stops } from "../../service/nodes/claim-loop.ts";
import { inlineTask } from "../../tasks/inline-task.ts";
import { ScriptedEngine } from "../../test/fakes/engines/scripted-engine.ts";
import { attemptResult } from "../../test/fakes/records/attempt-result.ts";
import { answerParent } from "../child.ts";
import { type Durations, durationOf } from "./durations.ts";
import { processMemory } from "./process-memory.ts";

/** `ledger`: of Postgres by its URL, else a folder. */
export type HostPlace = { ledger: string; token: string; folder: string };
export type SimulatedNodes = { names: string[]; slots: number; durations: Durations };
/** `notes`: how often nodes said what. */
export type HostFigures = { begun: number; cpuSeconds: number; notes: Record<string, number> };

const stop = new AbortController();
const scope = new AsyncDisposableStack();
const working: Promise<void>[] = [];
let place: HostPlace | null = null;
const notes: Record<string, number> = {};
let begun = 0;

function the<T>(value: T | null): T {
  if (value === null) throw new Error("open comes first");
  return value;
}

/** An embedded ledger has one process, so all of it share one. */
let embedded: SqliteLedger | null = null;
async function openLedger(user: "service" | "node"): Promise<Ledger> {
  const { ledger, folder } = the(place);
  if (ledger.startsWith("postgres:")) return scope.use(await PostgresLedger.open(ledger, user));
  embedded ??= scope.use(SqliteLedger.open(join(folder, "ledger.sqlite")));
  return embedded;
}

/** Returns the address of a listener. */
async function serve(): Promise<string> {
  const { folder, token } = the(place);
  const ledger = await openLedger("service");
  const parts = {
    ledger,
    blobs: new FolderBlobs(folder),
    engines: null,
    nodeFaults: null,
    taskOf: (given: unknown) => inlineTask(given),
    namedTasks: async () => [],
    harnessNamed: async () => null,
    setWebhooks: null,
    polar: null,
    pages: null,
  };
  const roles = ["submit", "read", "control", "node"] as const;
  const listener = scope.use(new ServiceListener(parts, [{ token, roles, namespace: null }], "bench"));
  working.push(watchNodes(ledger, (text) => console.error(text), stop.signal));
  return listener.listen("127.0.0.1", 0);
}

/** Resolves when all nodes have joined. */
async function startNodes({ names, slots, durations }: SimulatedNodes): Promise<void> {
  const engine = scope.use(await ScriptedEngine.start(() => ({ text: "" })));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const attempt = async (claim: Claim, { signal }: Stops): Promise<NodeEnd> => {
    begun += 1;
    const queued = Date.now();
    await sleep(durationOf(claim.rollout_id, durations) * 1000, undefined, { signal }).catch(() => undefined);
    return { result: rowLike(claim, queued), record: null, broken: signal.aborted ? "cancelled" : null };
  };
  const onError = (error: unknown): void => console.error(error);
  const note = (text: string): void => {
    notes[text] = (notes[text] ?? 0) + 1;
  };
  for (const name of names) {
    const ledger = await openLedger("node");
    const pool = scope.use(new EnginePool({ onError }));
    await pool.add({ engine: adapter, name: "engine" });
    const proxy = { pool, fences: scope.use(new WeightFences(pool, { onError })) };
    const setup = { proxy, onProgress: (event: ProgressEvent) => event.type === "note" && note(event.text) };
    const work = { name, ledger, setup, atOnce: { any: slots, evaluations: 0 }, attempt };
    working.push(new ClaimLoop(work, stop.signal, stop.signal).run());
  }
}

/** As long as the row of a real rollout. */
function rowLike({ set_id, rollout_id, attempt }: Claim, queued: number): NodeEnd["result"] {
  const key = `${set_id}/${rollout_id}/${attempt}`;
  return attemptResult({
    session_id: `ses-${rollout_id}`,
    policies: [{ version: "step-1", step: 1 }],
    components: { tests: 1, format: 0.5 },
    times: { queued, init: queued + 1, run: queued + 2, post: queued + 3, done: Date.now() },
    payload: { key, sha256: "0".repeat(64), bytes: 300_000 },
  });
}

function figures(): HostFigures {
  const { user, system } = process.cpuUsage();
  return { begun, cpuSeconds: (user + system) / 1e6, notes };
}

answerParent(
  {
    open: (given: HostPlace) => {
      place = given;
    },
    serve,
    startNodes: (nodes: SimulatedNodes) => startNodes(nodes),
    figures,
    memory: processMemory,
  },
  async () => {
    stop.abort();
    await Promise.allSettled(working);
    await scope.disposeAsync();
  },
);
