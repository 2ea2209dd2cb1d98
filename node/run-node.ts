/** One machine at work for a ledger. */
import type { Ledger } from "../ledger/index.ts";
import { type AttemptSetup, Attempts } from "./attempts.ts";
import { ClaimLoop } from "./claim-loop.ts";

export type NodeSetup = AttemptSetup & {
  /** Its name in the ledger; one that joins again under it takes the place of the one that died. */
  name: string;
  ledger: Ledger;
};

/**
 * Until one of the signals fires. `signal`: what runs then goes back into the line, and does not count as broken. `drain`:
 * nothing more is claimed, and what runs is ended.
 */
export async function runNode(node: NodeSetup, signal: AbortSignal, drain: AbortSignal = signal): Promise<void> {
  const { name, ledger, setup } = node;
  const attempts = new Attempts(node, signal);
  const work = {
    name,
    ledger,
    proxy: setup.proxy,
    atOnce: setup.slots.atOnce,
    note: (text: string) => attempts.note(text),
    attempt: attempts.make.bind(attempts),
    rest: attempts.rest.bind(attempts),
  };
  await new ClaimLoop(work, signal, AbortSignal.any([signal, drain])).run();
}
