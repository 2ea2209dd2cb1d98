/** All that a machine needs to make rollouts for a ledger, open until the scope ends. */
import { join } from "node:path";
import { removeDrafts } from "../../../base/files/layer.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { Grader } from "../../../graders/index.ts";
import { harnessNamed } from "../../../harnesses/index.ts";
import type { EngineSpec, HarnessProxy } from "../../../proxy/index.ts";
import { Appender } from "../../../proxy/store/index.ts";
import { type ProgressEvent, reapAtWork, type Slots } from "../../../rollouts/index.ts";
import type { SandboxBackend } from "../../../sandboxes/index.ts";
import type { PolicyName } from "../../../service/ledger/index.ts";
import { type NodeSetup, newestName, OldRecords, readLeftAttempts } from "../../../service/nodes/index.ts";
import { type Config, sessionOptionsOf } from "../../config.ts";
import { openEngines } from "../proxy/open-engine.ts";
import { harnessOf } from "../run/harness-of.ts";
import { openMachine } from "../run/open-machine.ts";
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

export type OpenedNode = AsyncDisposable & { proxy: HarnessProxy; node: Pick<NodeSetup, "setup" | "harnessNamed" | "session" | "left"> };

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
  const file = join(folder, "attempts.jsonl");
  const left = await readLeftAttempts(file);
  const attempts = scope.use(await Appender.open(file));
  const engines = opened.engines.map((engine) => (isNamed(engine, opened.engines) ? { ...engine, policy: null } : engine));
  const places = {
    blobs: join(folder, "blobs"),
    record: (record: RolloutRecord) => attempts.append(`${JSON.stringify(record)}\n`),
  };
  const { run_id, slots, graders, onProgress, watching } = place;
  const made = { run_id, path: folder, records: file, folder: places, engines, backend, slots, graders, onProgress, watching };
  const { proxy, setup } = scope.use(await openMachine(config, made, signal));
  const own = await harnessOf(config);
  scope.use(await reapAtWork(setup, signal, true));
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
    left,
  };
  const all = scope.move();
  return { proxy, node, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** As the pool takes an engine without a purpose. */
function isTrained(purpose: EngineSpec["purpose"]): boolean {
  return (purpose ?? "train") === "train";
}
