/** Looks at the leases of nodes again and again, so that what a dead one had is claimed by another; at the clocks of groups; and ends in parts what is many. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../base/errors.ts";
import { beatSeconds, type Ledger } from "./ledger.ts";

/** Until the scope ends. */
export function watchMeanwhile(ledger: Ledger, note: (text: string) => void): AsyncDisposable {
  const stop = new AbortController();
  const watching = watchNodes(ledger, note, stop.signal);
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await watching;
    },
  };
}

/** Until the signal fires. A ledger that does not answer is asked again with the next look, and said once. */
export async function watchNodes(ledger: Ledger, note: (text: string) => void, signal: AbortSignal): Promise<void> {
  const pause = () => sleep(beatSeconds * 1000, undefined, { signal }).catch(() => undefined);
  const looks = repeated(() => lookAtNodes(ledger, note), pause, note, signal);
  // By itself: what is many takes minutes, and leases end meanwhile.
  let seen = ledger.ending.version;
  const more = async () => {
    const either = AbortSignal.any([signal, AbortSignal.timeout(beatSeconds * 1000)]);
    seen = await ledger.ending.after(seen, either).catch(() => ledger.ending.version);
  };
  const ends = repeated(
    () => endAll(ledger, signal),
    more,
    (text) => note(`ends of many: ${text}`),
    signal,
  );
  await Promise.all([looks, ends]);
}

async function lookAtNodes(ledger: Ledger, note: (text: string) => void): Promise<void> {
  const dead = ledger.isShared ? await ledger.expire() : [];
  for (const name of dead) note(`node ${name} missed its lease: what it had is queued again`);
  await ledger.cutStragglers();
}

async function endAll(ledger: Ledger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await ledger.endMore()) > 0);
}

async function repeated(
  look: () => Promise<void>,
  pause: () => Promise<void>,
  note: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let isAway = false;
  while (!signal.aborted) {
    try {
      await look();
      if (isAway) note("the ledger answers again");
      isAway = false;
    } catch (error) {
      if (!isAway) note(messageOf(error));
      isAway = true;
    }
    await pause();
  }
}
