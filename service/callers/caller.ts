/** Who asks: what a route has of the token that came with the request. */

import type { AccessToken } from "../access.ts";
import type { Ledger } from "../ledger/index.ts";
import type { Leave, ServiceBounds } from "./bounds.ts";
import { TrainerLedger } from "./trainer-ledger.ts";

export type Caller = {
  /** Whose sets it sees; null: all. */
  namespace: string | null;
  /** With the sets that it sees. */
  ledger: TrainerLedger;
  /** A place for a stream of results, or for a request that waits for one. Throws `too_many_requests` beyond the token's share. */
  openStream(): Leave;
  openPoll(): Leave;
  /** Resolves when there is room for so many bytes of a body. Throws `too_many_requests`, and the signal's reason. */
  roomFor(bytes: number, signal: AbortSignal): Promise<Leave>;
};

export function callerOf(token: AccessToken, ledger: Ledger, bounds: ServiceBounds): Caller {
  return {
    namespace: token.namespace,
    ledger: new TrainerLedger(ledger, token.namespace),
    openStream: () => bounds.stream(token),
    openPoll: () => bounds.poll(token),
    roomFor: (bytes, signal) => bounds.body(token, bytes, signal),
  };
}
