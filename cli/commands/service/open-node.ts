/** All that a machine needs to make rollouts for a ledger, open until the scope ends. */
import { join } from "node:path";
import { removeDrafts } from "../../../base/files/layer.ts";
import { LastGuard } from "../../../base/host/deaths/last-guard.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { Grader } from "../../../graders/index.ts";
import { harnessNamed } from "../../../harnesses/index.ts";
import type { EngineSpec, HarnessProxy } from "../../../proxy/index.ts";
import { Appender } from "../../../proxy/store/index.ts";
import type { Slots } from "../../../rollouts/index.ts";
import { clearAway, type ProgressEvent, RunFolder, reapMeanwhile } from "../../../rollouts/index.ts";
import type { SandboxBackend } from "../../../sandboxes/index.ts";
import { WarmPool } from "../../../sandboxes/index.ts";
import type { PolicyName } from "../../../service/ledger/index.ts";
import { type NodeSetup, newestName, OldRecords } from "../../../service/nodes/index.ts";
import { type Config, sessionOptionsOf } from "../../config.ts";
import { openEngines } from "../proxy/open-engine.ts";
import { startProxy } from "../proxy/start-proxy.ts";
import { harnessOf } from "../run/harness-of.ts";
import { setupOf } from "../run/setup-of.ts";
import type { StopSignals } from "../terminal.ts";
import type { Watching } from "../watch/open-watching.ts";

type NodePlace = {
  /** Its records; the caller holds its lock. */
  folder: string;
  /** Labels its sandboxes: those of an earlier process with it are removed. */
  run_id: string;
  backend: SandboxBackend;
  slots: Slots;
  graders: readonly Grader[];
  /** Names of weights that are newer than the configuration's. */
  policies: readonly PolicyName[];
  /** Seconds after which logs and works are removed; null: never. */
  logsExpireAfter: number | null;
  onProgress: (event: ProgressEvent) => void;
  watching: Watching;
};

export type OpenedNode = AsyncDisposable & { proxy: HarnessProxy; node: Pick<NodeSetup, "setup" | "harnessNamed" | "session"> };

/**
 * Nothing is claimed yet. `drain` ends the opening, `cancel` a practice engine: what runs needs it after the drain. Throws what is
 * wrong with the engines, the harness or the sandboxes.
 */
export async function openNode(config: Config, place: NodePlace, { drain: signal, cancel }: StopSignals): Promise<OpenedNode> {
  await using scope = new AsyncDisposableStack();
  const { folder, backend, policies } = place;
  // Those are given by the node before it samples anything.
  const isNamed = ({ name, purpose }: EngineSpec, all: readonly EngineSpec[]): boolean =>
    newestName(policies, name, isTrained(purpose) || !all.some((one) => isTrained(one.purpose))) !== null;
  const opened = scope.use(await openEngines(config, cancel));
  await removeDrafts(join(folder, "blobs"));
  const attempts = scope.use(await Appender.open(join(folder, "attempts.jsonl")));
  const proxy = scope.use(
    await startProxy(config, {
      engines: opened.engines.map((engine) => (isNamed(engine, opened.engines) ? { ...engine, policy: null } : engine)),
      sessions: RunFolder.sessions(folder),
      watching: place.watching,
      signal,
    }),
  );
  const guard = scope.use(await LastGuard.open(folder, (text) => place.onProgress({ type: "note", text })));
  const setup = await setupOf(config, {
    run_id: place.run_id,
    guard,
    backend,
    warm: scope.use(new WarmPool(backend, config.warm)),
    proxy,
    folder: { blobs: join(folder, "blobs"), record: (record: RolloutRecord) => attempts.append(`${JSON.stringify(record)}\n`) },
    slots: place.slots,
    graders: place.graders,
    onProgress: place.onProgress,
    watcher: place.watching.watcher,
  });
  const own = await harnessOf(config);
  // Sandboxes of the process that died: their calls would reach no proxy.
  await clearAway(setup, { run: place.run_id }, signal);
  scope.use(reapMeanwhile(setup));
  if (place.logsExpireAfter !== null)
    scope.use(
      new OldRecords({
        folder,
        seconds: place.logsExpireAfter,
        isOpen: (id) => proxy.sessions.get(id) !== undefined,
        note: (text) => place.onProgress({ type: "note", text }),
      }),
    );
  const node = {
    setup,
    harnessNamed: async (name: string | null) => (name === null ? own : harnessNamed(name)),
    session: sessionOptionsOf(config),
  };
  const all = scope.move();
  return { proxy, node, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** As the pool takes an engine without a purpose. */
function isTrained(purpose: EngineSpec["purpose"]): boolean {
  return (purpose ?? "train") === "train";
}
