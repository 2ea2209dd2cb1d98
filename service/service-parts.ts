/** What the routes of a service work on. */

import type { Task } from "../base/schema/task.ts";
import type { Watcher } from "../base/schema/watcher.ts";
import type { MetricFamily } from "../base/wire/prometheus-text.ts";
import type { Fault } from "../proxy/control/index.ts";
import type { EngineSlot } from "../proxy/pool/index.ts";
import type { TakingHarness } from "../rollouts/accepted/index.ts";
import type { OwnBlobs } from "./blobs/index.ts";
import type { Demands, Ledger } from "./ledger/index.ts";
import type { ServicePages } from "./page-door.ts";
import type { Callbacks } from "./polar/callbacks.ts";

export type NamedTask = { task_id: string; hash: string };

export type ServiceParts = {
  ledger: Ledger;
  blobs: OwnBlobs;
  /** A task by its name in the task sets of the service, or as a value. Throws what is wrong with it, also by what its set demands. */
  taskOf(given: unknown, demands?: Demands): Promise<Task>;
  /** Those that may be named, each with the hash of its content (`contentHash`). */
  namedTasks(): Promise<NamedTask[]>;
  /** What holds for every set; none where left out. */
  demands?: Demands;
  /** The harness by this name; null: the service's own. Throws `harness_unknown`. Returns null where nodes elsewhere choose their own. */
  harnessNamed(name: string | null): Promise<TakingHarness | null>;
  /** The engines as `GET /engines` describes them; null: they are at nodes in other processes. */
  engines: (() => ReturnType<EngineSlot["describe"]>[]) | null;
  /** What keeps the node of this process from its work; null: nodes are in other processes. */
  nodeFaults: ((signal: AbortSignal) => Promise<Fault[]>) | null;
  /** Is told of each set that is asked for. */
  watcher?: Pick<Watcher, "set"> | undefined;
  /** Figures of this process, for a monitor. */
  families?: (() => MetricFamily[]) | undefined;
  /** Which webhooks sets may name; null: none. */
  setWebhooks: { mayBePrivate: boolean } | null;
  /** For the addresses that bridges of Polar's give; null: its routes are not served. */
  polar: Callbacks | null;
  /** Pages for a browser, below `/view`; null: there are none. */
  pages: ServicePages | null;
};
