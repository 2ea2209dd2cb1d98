/**
 * Counts how often each task of a set was passed. Reads each result once, by the cursor that trainers use. So a later question reads
 * only the results that are new since.
 */
import { SharedWork } from "../base/host/shared-work.ts";
import type { PassCount, PassCounts } from "../tasks/index.ts";
import type { Ledger } from "./ledger/index.ts";
import { resultPages } from "./result-pages.ts";

/** Sets in memory: each takes some tens of bytes for each task and reward. The set that was asked for least recently is dropped, and read again when it is wanted. */
const mostSets = 32;

/** `rewards`: task -> reward -> how many results had it. The inner map is empty if no result has a reward. */
type ReadSet = { cursor: string | null; rewards: Map<string, Map<number, number>>; work: SharedWork<void> };

export class SetPasses {
  readonly #ledger: Ledger;
  readonly #readings = new Map<string, ReadSet>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Counts all results so far. Includes tasks without a reward. Throws `not_found`, and the signal's reason. */
  async of(set: string, pass: number, signal: AbortSignal): Promise<PassCounts> {
    const reading = this.#reading(set);
    await reading.work.join(signal, (shared) => this.#readOn(set, reading, shared));
    return new Map([...reading.rewards].map(([task, rewards]) => [task, countOf(rewards, pass)]));
  }

  #reading(set: string): ReadSet {
    const reading = this.#readings.get(set) ?? { cursor: null, rewards: new Map(), work: new SharedWork<void>() };
    // Moves this set to the end: the first one is then the least recently used.
    this.#readings.delete(set);
    this.#readings.set(set, reading);
    const [oldest] = this.#readings.keys();
    if (this.#readings.size > mostSets && oldest !== undefined) this.#readings.delete(oldest);
    return reading;
  }

  async #readOn(set: string, reading: ReadSet, signal: AbortSignal): Promise<void> {
    for await (const page of resultPages(this.#ledger, set, reading.cursor, signal)) {
      for (const { row } of page) {
        const rewards = reading.rewards.get(row.task_id) ?? new Map<number, number>();
        reading.rewards.set(row.task_id, rewards);
        if (row.reward !== null) rewards.set(row.reward, (rewards.get(row.reward) ?? 0) + 1);
      }
      reading.cursor = page.at(-1)?.cursor ?? reading.cursor;
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
