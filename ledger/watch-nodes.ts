/** Looks at the leases of nodes again and again, so that what a dead one had is claimed by another; and at the clocks of groups. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import { beatSeconds, type Ledger } from "./ledger.ts";

/** Until the signal fires. A ledger that does not answer is asked again with the next look, and said once. */
export async function watchNodes(ledger: Ledger, note: (text: string) => void, signal: AbortSignal): Promise<void> {
  let isAway = false;
  while (!signal.aborted) {
    try {
      for (const name of await ledger.expire()) note(`node ${name} missed its lease: what it had is queued again`);
      await ledger.cutStragglers();
      if (isAway) note("the ledger answers again");
      isAway = false;
    } catch (error) {
      if (!isAway) note(messageOf(error));
      isAway = true;
    }
    await sleep(beatSeconds * 1000, undefined, { signal }).catch(() => undefined);
  }
}
