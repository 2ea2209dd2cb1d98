/**
 * What the results of each set add up to. They are read once, by the cursors that trainers use, and added to what is known:
 * a look at a set costs the results that are new since the last one. After a restart the first look reads all of them.
 */
import { SharedWork } from "../host/shared-work.ts";
import type { Ledger } from "../ledger/index.ts";
import { EvaluationTally, StepTallies } from "../rollouts/index.ts";

/** A page is parsed at one go, and the listener answers others between two. */
const rowsAtOnce = 500;
/** Groups have four to some hundreds of rows. */
const groupsAtOnce = 50;

/** `evaluation`: of a set of that purpose. `counted`: results; one that was expired before it was read is not among them. */
type Tallies = { steps: StepTallies; evaluation: EvaluationTally | null; counted: number };

/** Two that read the same page at once would count it twice, so they share the work. */
type Reading = Tallies & { rows: string | null; groups: string | null; work: SharedWork<void> };

export class SetTallies {
  readonly #ledger: Ledger;
  readonly #readings = new Map<string, Reading>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Throws `not_found`, and the signal's reason. */
  async of(set: string, signal: AbortSignal): Promise<Tallies> {
    const { purpose } = await this.#ledger.specOf(set);
    const reading = this.#readings.get(set) ?? {
      steps: new StepTallies(),
      evaluation: purpose === "eval" ? new EvaluationTally() : null,
      counted: 0,
      rows: null,
      groups: null,
      work: new SharedWork(),
    };
    this.#readings.set(set, reading);
    await reading.work.join(signal, async (shared) => {
      await this.#readRows(set, reading, shared);
      await this.#readGroups(set, reading, shared);
    });
    return reading;
  }

  async #readRows(set: string, reading: Reading, signal: AbortSignal): Promise<void> {
    for (let found = rowsAtOnce; found === rowsAtOnce; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.results(set, reading.rows, rowsAtOnce, "skip");
      for (const { row } of page) {
        reading.steps.addRow(row);
        reading.evaluation?.add(row);
      }
      reading.counted += page.length;
      reading.rows = page.at(-1)?.cursor ?? reading.rows;
      found = page.length;
    }
  }

  async #readGroups(set: string, reading: Reading, signal: AbortSignal): Promise<void> {
    for (let found = groupsAtOnce; found === groupsAtOnce; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.wholeGroups(set, reading.groups, groupsAtOnce, "skip");
      for (const { rows } of page) reading.steps.addGroup(rows);
      reading.groups = page.at(-1)?.cursor ?? reading.groups;
      found = page.length;
    }
  }
}
