/** Who asks: what a route has of the token that came with the request. */
import type { TrainerLedger } from "./trainer-ledger.ts";

export type Caller = {
  /** Whose sets it sees; null: all. */
  namespace: string | null;
  /** With the sets that it sees. */
  ledger: TrainerLedger;
};
