/**
 * Removes results that are expired, and what lies outside of the ledger under their rollouts' names. The ledger writes down what is
 * to be removed as its rows go, and strikes it out behind: a sweep that was killed is ended by the next one, of any service.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Blobs } from "../blobs/index.ts";
import { messageOf } from "../errors.ts";
import type { Ledger } from "../ledger/index.ts";

const defaultPauseMs = 60_000;
/** A bucket takes two requests for each. */
const removalsAtOnce = 20;

export type SweepParts = {
  ledger: Ledger;
  blobs: Blobs;
  /** Seconds, for sets that do not say; null: those keep their results. */
  byDefault: number | null;
  /** Hears of the first failure in a row. */
  note: (text: string) => void;
};

export class ExpirySweep implements AsyncDisposable {
  readonly #parts: SweepParts;
  readonly #stop = new AbortController();
  readonly #work: Promise<void>;

  constructor(parts: SweepParts, pauseMs = defaultPauseMs) {
    this.#parts = parts;
    this.#work = this.#sweepOn(pauseMs, this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  async #sweepOn(pauseMs: number, signal: AbortSignal): Promise<void> {
    for (let isFailing = false; !signal.aborted; ) {
      try {
        await sweep(this.#parts, signal);
        isFailing = false;
      } catch (error) {
        if (!isFailing && !signal.aborted) this.#parts.note(`expired results are not removed: ${messageOf(error)}; it is tried again`);
        isFailing = true;
      }
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/** What was begun first, then group by group. Throws what the ledger or the blobs throw, and ends early when the signal fires. */
export async function sweep(parts: Omit<SweepParts, "note">, signal: AbortSignal): Promise<void> {
  do await removeAll(parts, signal);
  while (!signal.aborted && (await parts.ledger.expireResults(parts.byDefault)) > 0);
}

async function removeAll({ ledger, blobs }: Pick<SweepParts, "ledger" | "blobs">, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const page = await ledger.removals(removalsAtOnce);
    if (page.length === 0) return;
    await Promise.all(page.map(({ set_id, rollout_id }) => blobs.removeBelow(`${set_id}/${rollout_id}`)));
    await ledger.removed(page);
  }
}
