/**
 * Counts how often each task of a set was passed. Reads each result once, by the cursor that trainers use. So a later question reads
 * only the results that are new since.
 */
import { SharedWork } from "../base/host/shared-work.ts";
import type { PassCounts } from "../tasks/sets/index.ts";
import type { Ledger } from "./ledger/index.ts";
import { resultPages } from "./result-pages.ts";

/** Readings in memory, and their tasks together: each task takes some 150 bytes, however many results and rewards it has. */
const bounds = { readings: 32, tasks: 500_000 };

/** A set read for one `pass`; another one reads it again, because counts are kept and not rewards. */
type PassReading = { cursor: string | null; counts: Map<string, { measured: number; passed: number }>; work: SharedWork<void> };

export class SetPasses {
  readonly #ledger: Ledger;
  readonly #readings = new Map<string, PassReading>();
  readonly #bounds: typeof bounds;

  constructor(ledger: Ledger, most = bounds) {
    this.#ledger = ledger;
    this.#bounds = most;
  }

  /** Counts all results so far. Includes tasks without a reward. Throws `not_found`, and the signal's reason. */
  async of(set: string, pass: number, signal: AbortSignal): Promise<PassCounts> {
    const reading = this.#reading(`${pass} ${set}`);
    try {
      await reading.work.join(signal, (shared) => this.#readOn(set, pass, reading, shared));
    } finally {
      this.#dropOldest();
    }
    return new Map([...reading.counts].map(([task, count]) => [task, { ...count }]));
  }

  #reading(name: string): PassReading {
    const reading = this.#readings.get(name) ?? { cursor: null, counts: new Map(), work: new SharedWork<void>() };
    // Moves it to the end: the first one is then the least recently used.
    this.#readings.delete(name);
    this.#readings.set(name, reading);
    return reading;
  }

  /** The newest one stays, however large its set is. What is dropped is read again when it is wanted. */
  #dropOldest(): void {
    let tasks = [...this.#readings.values()].reduce((sum, { counts }) => sum + counts.size, 0);
    for (const [name, { counts }] of this.#readings) {
      const isWithin = this.#readings.size <= this.#bounds.readings && tasks <= this.#bounds.tasks;
      if (isWithin || this.#readings.size === 1) return;
      this.#readings.delete(name);
      tasks -= counts.size;
    }
  }

  async #readOn(set: string, pass: number, reading: PassReading, signal: AbortSignal): Promise<void> {
    for await (const page of resultPages(this.#ledger, set, reading.cursor, signal)) {
      for (const { row } of page) {
        const count = reading.counts.get(row.task_id) ?? { measured: 0, passed: 0 };
        reading.counts.set(row.task_id, count);
        if (row.reward === null) continue;
        count.measured++;
        if (row.reward >= pass) count.passed++;
      }
      reading.cursor = page.at(-1)?.cursor ?? reading.cursor;
    }
  }
}
