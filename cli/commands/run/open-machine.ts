/** What a process makes rollouts with, for a run and for a node alike. */

import { LastGuard } from "../../../base/host/deaths/last-guard.ts";
import { currentOwner } from "../../../base/host/owner.ts";
import type { EngineSpec, HarnessProxy } from "../../../proxy/index.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { publicGrantOf } from "../../../rollouts/accepted/index.ts";
import { countFinishedCalls, RunFolder, type RunSetup } from "../../../rollouts/index.ts";
import { DiskBudget, WarmPool } from "../../../sandboxes/index.ts";
import type { ForwardBounds } from "../../../sandboxes/network/index.ts";
import type { Config } from "../../config.ts";
import { startProxy } from "../proxy/start-proxy.ts";
import { openTeacher } from "../records/open-teacher.ts";
import type { Watching } from "../watch/open-watching.ts";

type MachinePlace<Folder> = Pick<RunSetup, "run_id" | "backend" | "slots" | "graders" | "onProgress" | "onLeftOut"> & {
  /** Holds session logs, and the deaths of processes at work here. The caller holds its lock. */
  path: string;
  /** The file with the records of its attempts. */
  records: string;
  /** Takes the records. */
  folder: Folder;
  engines: EngineSpec[];
  /** It listens for a trainer, too. */
  control?: { token: string; port: number } | undefined;
  watching: Watching;
};

export type Machine<Folder> = AsyncDisposable & {
  proxy: HarnessProxy;
  guard: LastGuard;
  setup: Omit<RunSetup, "folder"> & { folder: Folder };
};

/** Open until the scope ends. `signal` ends the opening. Throws what is wrong with the engines. */
export async function openMachine<Folder>(config: Config, place: MachinePlace<Folder>, signal: AbortSignal): Promise<Machine<Folder>> {
  const { path, records, engines, control, watching, ...own } = place;
  await using scope = new AsyncDisposableStack();
  const store = new DiskStore(RunFolder.sessions(path));
  const note = (text: string): void => own.onProgress({ type: "note", text });
  const countCalls = (attempts: readonly string[]) => countFinishedCalls(records, store, attempts);
  const guard = scope.use(await LastGuard.open(path, note, countCalls));
  const proxy = scope.use(
    await startProxy(config, {
      engines,
      sessions: RunFolder.sessions(path),
      vocabulary: RunFolder.vocabulary(path),
      control,
      watching,
      signal,
    }),
  );
  const { media } = store;
  const taught = config.teacher && scope.use(await openTeacher(config.teacher, { pool: proxy.pool, media, note }, signal));
  const warm = scope.use(new WarmPool(own.backend, config.warm));
  const setup = {
    ...own,
    owner: await currentOwner(),
    guard,
    proxy,
    ...(config.warm.sandboxes > 0 && { warm }),
    ...(taught && { teacher: taught.teacher }),
    disk: new DiskBudget(own.backend, config.disk),
    resume: config.resume,
    max_null_share: config.max_null_share,
    network: { ...publicGrantOf(config), bounds: networkBounds(config.bounds) },
    watcher: watching.watcher,
  };
  const all = scope.move();
  return { proxy, guard, setup, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** What a rollout may take of the network that its task allows, as its sandboxes know it. */
function networkBounds({ network_connections, network_bytes }: Config["bounds"]): Partial<ForwardBounds> {
  return { connections: network_connections, bytes: network_bytes };
}
