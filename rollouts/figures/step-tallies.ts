/** Results by the policy step that sampled them, and all of them together. */
import { figuresOf, type StepFigures, toFigure } from "./step-figures.ts";
import { addGroup, addRow, emptyTally, passReward, type ResultTally, type TalliedRow } from "./tally.ts";

/** Data sources are the users' own words: so many are kept apart in a step. */
const mostSources = 100;

type SourceRewards = { passed: number; measured: number };
type StepTally = { tally: ResultTally; sources: Map<string | null, SourceRewards>; leftOut: number };

export class StepTallies {
  readonly total: ResultTally = emptyTally();
  readonly #steps = new Map<number | null, StepTally>();

  addRow(row: TalliedRow): void {
    const step = this.#stepAt(stepOf(row));
    for (const tally of [this.total, step.tally]) addRow(tally, row);
    addToSource(step, row);
  }

  /** A whole group, which counts at the newest step of its rows. */
  addGroup(rows: readonly TalliedRow[]): void {
    const newest = newestOf(rows.map(stepOf));
    for (const tally of [this.total, this.#stepAt(newest).tally]) addGroup(tally, rows);
  }

  /** Milliseconds in which engines had calls of the step, of those in which they could have had some. */
  addBusy(step: number, { busy_ms, engine_ms }: Pick<ResultTally, "busy_ms" | "engine_ms">): void {
    for (const tally of [this.total, this.#stepAt(step).tally]) {
      tally.busy_ms += busy_ms;
      tally.engine_ms += engine_ms;
    }
  }

  get size(): number {
    return this.#steps.size;
  }

  /** The last `most` steps in their order; results of an unknown step come first, beside them. */
  latest(most: number): StepFigures[] {
    const known = [...this.#steps.keys()].filter((step) => step !== null).toSorted((one, other) => one - other);
    const shown = [...(this.#steps.has(null) ? [null] : []), ...known.slice(-most)];
    return shown.map((step) => toStepFigures(step, this.#stepAt(step)));
  }

  #stepAt(step: number | null): StepTally {
    const found = this.#steps.get(step) ?? { tally: emptyTally(), sources: new Map(), leftOut: 0 };
    this.#steps.set(step, found);
    return found;
  }
}

/** null: one of them is unknown, or there is none. */
export function newestOf(steps: readonly (number | null)[]): number | null {
  const known = steps.flatMap((step) => step ?? []);
  return known.length === 0 || known.length < steps.length ? null : Math.max(...known);
}

/** The newest step that sampled it. What sampled nothing counts at the step in force when it ended. */
function stepOf({ sampled_tokens, newest_step, policy_step }: TalliedRow): number | null {
  return sampled_tokens === 0 ? policy_step : newest_step;
}

function addToSource(step: StepTally, { reward, figures }: TalliedRow): void {
  if (reward === null || figures === null) return;
  const known = step.sources.get(figures.data_source);
  if (known === undefined && step.sources.size === mostSources) step.leftOut += 1;
  else {
    const { passed, measured } = known ?? { passed: 0, measured: 0 };
    step.sources.set(figures.data_source, { passed: passed + Number(reward >= passReward), measured: measured + 1 });
  }
}

function toStepFigures(policy_step: number | null, { tally, sources, leftOut }: StepTally): StepFigures {
  const apart = [...sources].toSorted(([, one], [, other]) => other.measured - one.measured);
  return {
    policy_step,
    results: tally.results,
    figures: figuresOf(tally),
    // A source that is listed has a reward.
    pass_by_source: apart.map(([data_source, { passed, measured }]) => ({ data_source, ...toFigure([passed, measured], "") })),
    sources_left_out: leftOut,
  };
}
