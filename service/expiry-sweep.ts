/**
 * Removes results that are expired, and what lies outside of the ledger under their rollouts' names. The ledger writes down what is
 * to be removed as its rows go, and strikes it out behind: a sweep that was killed is ended by the next one, of any service.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { OwnBlobs } from "../blobs/index.ts";
import { messageOf } from "../errors.ts";
import type { Ledger } from "../ledger/index.ts";

const defaultPauseMs = 60_000;
/** A bucket takes two requests for each. */
const removalsAtOnce = 20;
/** One sweep tries no more after so many: the store is away then. */
const mostFailures = 200;

export type SweepParts = {
  ledger: Ledger;
  blobs: Pick<OwnBlobs, "removeBelow">;
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

/**
 * What was begun first, then group by group. What cannot be removed holds up nothing else: it is thrown at the end, and stays to be
 * removed. Throws what the ledger throws, and ends early when the signal fires.
 */
export async function sweep(parts: Omit<SweepParts, "note">, signal: AbortSignal): Promise<void> {
  const failures = new Map<string, unknown>();
  do await removeAll(parts, failures, signal);
  while (!signal.aborted && (await parts.ledger.expireResults(parts.byDefault)) > 0);
  const [first] = failures.values();
  if (failures.size > 1) throw new Error(`${messageOf(first)} (the first of ${failures.size} failures)`, { cause: first });
  if (failures.size === 1) throw first;
}

/** `failures`, by the rollout, come with each page again and are not tried again. */
async function removeAll(
  { ledger, blobs }: Pick<SweepParts, "ledger" | "blobs">,
  failures: Map<string, unknown>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && failures.size < mostFailures) {
    const page = await ledger.removals(removalsAtOnce + failures.size);
    const untried = page.filter(({ rollout_id }) => !failures.has(rollout_id));
    if (untried.length === 0) return;
    const ends = await Promise.allSettled(untried.map(({ set_id, rollout_id }) => blobs.removeBelow(`${set_id}/${rollout_id}`)));
    const gone = untried.filter(({ rollout_id }, at) => {
      const end = ends[at];
      if (end?.status === "rejected") failures.set(rollout_id, end.reason);
      return end?.status === "fulfilled";
    });
    if (gone.length > 0) await ledger.removed(gone);
  }
}
