/**
 * What the results of each set add up to. They are read once, by the cursors that trainers use, and added to what is known:
 * a look at a set costs the results that are new since the last one. What is known is kept in the ledger, so a restart reads none again.
 */
import { z } from "zod";
import { SharedWork } from "../base/host/shared-work.ts";
import { tryJson } from "../base/schema/read-json.ts";
import { EvaluationTally, KeptEvaluation, KeptSteps, StepTallies } from "./figures/index.ts";
import type { Ledger } from "./ledger/index.ts";
import { resultPages } from "./result-pages.ts";

/** Groups have four to some hundreds of rows. */
const groupsAtOnce = 50;
/** What is known takes up to a megabyte, and to read so many again takes half a second. Fewer are kept after a minute, before they expire. */
const rowsUnkept = 5_000;
const unkeptMs = 60_000;

/** `evaluation`: of a set of that purpose. `counted`: results; one that was expired before it was read is not among them. */
type Tallies = { steps: StepTallies; evaluation: EvaluationTally | null; counted: number };

/** Cursors behind what was read of either order; null: nothing was. */
type Reading = Tallies & { rows: string | null; groups: string | null; unkept: number; keptAt: number };

/** Raised when a later version counts something else: what is kept is read anew then. */
const version = 1;
const KeptTallies = z.strictObject({
  version: z.literal(version),
  rows: z.string().nullable(),
  groups: z.string().nullable(),
  counted: z.number().int(),
  steps: KeptSteps,
  evaluation: KeptEvaluation.nullable(),
});

export class SetTallies {
  readonly #ledger: Ledger;
  readonly #readings = new Map<string, Promise<Reading>>();
  /** Two that read the same page at once would count it twice, so they share the work. It says how many results are read. */
  readonly #work = new Map<string, SharedWork<number>>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** With all results that there are. Throws `not_found`, and the signal's reason. */
  async of(set: string, signal: AbortSignal): Promise<Tallies> {
    while ((await this.#readOn(set, rowsUnkept, signal)) > 0);
    return this.#reading(set);
  }

  /** With so many more results at most, and how many of them were read: others are read by the next look. Throws as `of`. */
  async soFar(set: string, most: number, signal: AbortSignal): Promise<{ tallies: Tallies; read: number }> {
    const read = most > 0 ? await this.#readOn(set, most, signal) : 0;
    return { tallies: await this.#reading(set), read };
  }

  async #readOn(set: string, most: number, signal: AbortSignal): Promise<number> {
    const work = this.#work.get(set) ?? new SharedWork<number>();
    this.#work.set(set, work);
    return work.join(signal, async (shared) => {
      const reading = await this.#reading(set);
      const read = (await this.#readRows(set, reading, most, shared)) + (await this.#readGroups(set, reading, most, shared));
      reading.unkept += read;
      const isLate = reading.unkept > 0 && performance.now() - reading.keptAt > unkeptMs;
      if (isLate || reading.unkept >= rowsUnkept) await this.#keep(set, reading);
      return read;
    });
  }

  #reading(set: string): Promise<Reading> {
    const known = this.#readings.get(set);
    if (known !== undefined) return known;
    const opened = this.#open(set);
    this.#readings.set(set, opened);
    opened.catch(() => this.#readings.delete(set));
    return opened;
  }

  async #open(set: string): Promise<Reading> {
    const { purpose } = await this.#ledger.specOf(set);
    const fresh = { unkept: 0, keptAt: performance.now() };
    const kept = KeptTallies.safeParse(tryJson((await this.#ledger.tallyOf(set)) ?? "null"));
    if (!kept.success) {
      const evaluation = purpose === "eval" ? new EvaluationTally() : null;
      return { steps: new StepTallies(), evaluation, counted: 0, rows: null, groups: null, ...fresh };
    }
    const { steps, evaluation, rows, groups, counted } = kept.data;
    return { steps: StepTallies.of(steps), evaluation: evaluation && new EvaluationTally(evaluation), counted, rows, groups, ...fresh };
  }

  async #keep(set: string, reading: Reading): Promise<void> {
    const { rows, groups, counted, steps, evaluation } = reading;
    const kept: z.infer<typeof KeptTallies> = {
      version,
      rows,
      groups,
      counted,
      steps: steps.toKept(),
      evaluation: evaluation?.toKept() ?? null,
    };
    await this.#ledger.keepTally(set, JSON.stringify(kept));
    reading.unkept = 0;
    reading.keptAt = performance.now();
  }

  async #readRows(set: string, reading: Reading, most: number, signal: AbortSignal): Promise<number> {
    let read = 0;
    for await (const page of resultPages(this.#ledger, set, reading.rows, signal)) {
      for (const { row } of page) {
        reading.steps.addRow(row);
        reading.evaluation?.add(row);
      }
      reading.counted += page.length;
      reading.rows = page.at(-1)?.cursor ?? reading.rows;
      read += page.length;
      if (read >= most) break;
    }
    return read;
  }

  async #readGroups(set: string, reading: Reading, most: number, signal: AbortSignal): Promise<number> {
    let read = 0;
    for (let found = groupsAtOnce; found === groupsAtOnce && read < most; ) {
      signal.throwIfAborted();
      const page = await this.#ledger.wholeGroups(set, reading.groups, groupsAtOnce, "skip");
      for (const { rows } of page) reading.steps.addGroup(rows);
      reading.groups = page.at(-1)?.cursor ?? reading.groups;
      found = page.length;
      read += page.reduce((sum, { rows }) => sum + rows.length, 0);
    }
    return read;
  }
}
