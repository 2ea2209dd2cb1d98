/**
 * Removes results that are expired, with what lies outside of the ledger under their rollouts' names, and trajectories of attempts that
 * were fenced, whose rollouts ended by another one. The ledger writes down what is to be removed as its rows come and go, and strikes it
 * out behind: a sweep that was killed is ended by the next one, of any service.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../base/errors.ts";
import type { OwnBlobs } from "./blobs/index.ts";
import type { Ledger, Removal, Superseded } from "./ledger/index.ts";

const defaultPauseMs = 60_000;
/** A bucket takes two requests for each. */
const removalsAtOnce = 20;
/** A node that was taken for dead may be at work on its trajectory: it asks a bucket that is away again for ten minutes. */
const supersededSeconds = 900;
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
        if (!isFailing && !signal.aborted)
          this.#parts.note(`what is needed no more is not removed: ${messageOf(error)}; it is tried again`);
        isFailing = true;
      }
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/**
 * What was begun first, then group by group; then trajectories of attempts that gave no result. What cannot be removed holds up nothing
 * else: it is thrown at the end, and stays to be removed. Throws what the ledger throws, and ends early when the signal fires.
 */
export async function sweep({ ledger, blobs, byDefault }: Omit<SweepParts, "note">, signal: AbortSignal): Promise<void> {
  const failures = new Map<string, unknown>();
  const expired: Leavings<Removal> = {
    page: (limit) => ledger.removals(limit),
    remove: (one) => blobs.removeBelow(nameOf(one)),
    strike: (gone) => ledger.removed(gone),
  };
  const superseded: Leavings<Superseded> = {
    page: (limit) => ledger.superseded(limit, supersededSeconds),
    remove: (one) => blobs.removeBelow(nameOf(one), one.key),
    strike: (gone) => ledger.settled(gone),
  };
  do await removeAll(expired, failures, signal);
  while (!signal.aborted && (await ledger.expireResults(byDefault)) > 0);
  await removeAll(superseded, failures, signal);
  const [first] = failures.values();
  if (failures.size > 1) throw new Error(`${messageOf(first)} (the first of ${failures.size} failures)`, { cause: first });
  if (failures.size === 1) throw first;
}

/** What the ledger has written down as to be removed, page by page, and strikes out behind. */
type Leavings<One extends Removal> = {
  page(limit: number): Promise<One[]>;
  remove(one: One): Promise<void>;
  strike(gone: readonly One[]): Promise<void>;
};

const nameOf = ({ set_id, rollout_id }: Removal): string => `${set_id}/${rollout_id}`;

/** `failures`, by the rollout, come with each page again and are not tried again. */
async function removeAll<One extends Removal>(
  { page, remove, strike }: Leavings<One>,
  failures: Map<string, unknown>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && failures.size < mostFailures) {
    const found = await page(removalsAtOnce + failures.size);
    const untried = found.filter(({ rollout_id }) => !failures.has(rollout_id));
    if (untried.length === 0) return;
    const ends = await Promise.allSettled(untried.map(remove));
    const gone = untried.filter(({ rollout_id }, at) => {
      const end = ends[at];
      if (end?.status === "rejected") failures.set(rollout_id, end.reason);
      return end?.status === "fulfilled";
    });
    if (gone.length > 0) await strike(gone);
  }
}
