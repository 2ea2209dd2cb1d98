import type { Watcher } from "../../base/schema/watcher.ts";
import type { Network } from "../../base/wire/network.ts";
import type { Continuity } from "../continuity/continuity.ts";
import type { EnginePool } from "../pool/engine-pool.ts";
import type { VocabularyStore } from "../store/index.ts";

/** What a call needs of the proxy around it. */
export type CallSurroundings = {
  pool: EnginePool;
  continuity: Continuity;
  /** Where images of sandboxed sessions are fetched from; absent: the public internet. */
  network?: Network | undefined;
  /** Keeps texts of sampled tokens; absent: they are not kept. */
  vocabulary?: VocabularyStore | undefined;
  /** How often a waiting client is shown a sign of life. */
  keepAliveMs?: number | undefined;
  /** Is told of each call whose end is in the log. */
  watcher?: Pick<Watcher, "call"> | undefined;
  onError(error: unknown, what: string): void;
};
