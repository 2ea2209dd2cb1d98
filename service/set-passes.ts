/**
 * How often each task of a set was passed. Results are read once, by the cursor that trainers use, so a look at a set costs the
 * results that are new since the last one.
 */
import { SharedWork } from "../base/host/shared-work.ts";
import type { PassCount, PassCounts } from "../tasks/pass-rate.ts";
import type { Ledger } from "./ledger/index.ts";

/** A page is parsed at one go, and the listener answers others between two. */
const rowsAtOnce = 500;
/** A set has some tens of bytes a task and reward in memory. One that is asked for again after so many others is read again. */
const mostSets = 32;

/** `rewards`: by task how many results had each reward; an empty map where no result has one. */
type ReadSet = { cursor: string | null; rewards: Map<string, Map<number, number>>; work: SharedWork<void> };

export class SetPasses {
  readonly #ledger: Ledger;
  readonly #readings = new Map<string, ReadSet>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Counts all results that there are; a task of which nothing was measured is in it. Throws `not_found`, and the signal's reason. */
  async of(set: string, pass: number, signal: AbortSignal): Promise<PassCounts> {
    const reading = this.#reading(set);
    await reading.work.join(signal, (shared) => this.#readOn(set, reading, shared));
    return new Map([...reading.rewards].map(([task, rewards]) => [task, countOf(rewards, pass)]));
  }

  #reading(set: string): ReadSet {
    const reading = this.#readings.get(set) ?? { cursor: null, rewards: new Map(), work: new SharedWork<void>() };
    // The one that was asked for last stands last.
    this.#readings.delete(set);
    this.#readings.set(set, reading);
    const [oldest] = this.#readings.keys();
    if (this.#readings.size > mostSets && oldest !== undefined) this.#readings.delete(oldest);
    return reading;
  }

  async #readOn(set: string, reading: ReadSet, signal: AbortSignal): Promise<void> {
    for (let found = rowsAtOnce; found === rowsAtOnce; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.results(set, reading.cursor, rowsAtOnce, "skip");
      for (const { row } of page) {
        const rewards = reading.rewards.get(row.task_id) ?? new Map<number, number>();
        reading.rewards.set(row.task_id, rewards);
        if (row.reward !== null) rewards.set(row.reward, (rewards.get(row.reward) ?? 0) + 1);
      }
      reading.cursor = page.at(-1)?.cursor ?? reading.cursor;
      found = page.length;
    }
  }
}

function countOf(rewards: ReadonlyMap<number, number>, pass: number): PassCount {
  const count = { measured: 0, passed: 0 };
  for (const [reward, results] of rewards) {
    count.measured += results;
    if (reward >= pass) count.passed += results;
  }
  return count;
}
