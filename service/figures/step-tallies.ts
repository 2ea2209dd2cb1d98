/** Results by the policy step that sampled them, and all of them together. */
import { z } from "zod";
import { type EngineTime, EngineTimes, KeptTimes } from "./engine-times.ts";
import { figuresOf, type StepFigures, toFigure } from "./step-figures.ts";
import { addGroup, addRow, emptyTally, passReward, ResultTally, sampledIn, type TalliedRow } from "./tally.ts";

/** Data sources are the users' own words: so many are kept apart in a step. */
const mostSources = 100;

/** In a set: a megabyte. Where engines have calls all the time a step has a few spans, and its results come within a few steps. */
const mostSpansKept = 50_000;

type SourceRewards = { passed: number; measured: number };
type StepTally = { tally: ResultTally; sources: Map<string | null, SourceRewards>; leftOut: number };

/** All that is known, for a later process. */
export const KeptSteps = z.strictObject({
  total: ResultTally,
  steps: z.array(
    z.strictObject({
      step: z.number().int().nullable(),
      tally: ResultTally,
      sources: z.array(z.strictObject({ data_source: z.string().nullable(), passed: z.number(), measured: z.number() })),
      left_out: z.number(),
    }),
  ),
  times: KeptTimes,
});
export type KeptSteps = z.infer<typeof KeptSteps>;

export class StepTallies {
  readonly total: ResultTally;
  readonly #steps = new Map<number | null, StepTally>();
  readonly #times: EngineTimes;

  /** `mostSpans`: spans of calls at engines that are kept, so that further results add up with them. */
  constructor(mostSpans = mostSpansKept, kept: KeptSteps | null = null) {
    this.#times = new EngineTimes(mostSpans, kept?.times);
    this.total = kept?.total ?? emptyTally();
    for (const { step, tally, sources, left_out } of kept?.steps ?? []) {
      const known = sources.map(({ data_source, ...rewards }) => [data_source, rewards] as const);
      this.#steps.set(step, { tally, sources: new Map(known), leftOut: left_out });
    }
  }

  static of(kept: KeptSteps): StepTallies {
    return new StepTallies(mostSpansKept, kept);
  }

  toKept(): KeptSteps {
    const steps = [...this.#steps].map(([step, { tally, sources, leftOut }]) => ({
      step,
      tally,
      sources: [...sources].map(([data_source, rewards]) => ({ data_source, ...rewards })),
      left_out: leftOut,
    }));
    return { total: this.total, steps, times: this.#times.toKept() };
  }

  addRow(row: TalliedRow): void {
    const step = this.#stepAt(stepOf(row));
    for (const tally of [this.total, step.tally]) addRow(tally, row);
    addToSource(step, row);
    this.#addTimes(row);
  }

  /** A whole group, which counts at the newest step of its rows. */
  addGroup(rows: readonly TalliedRow[]): void {
    const newest = newestOf(rows.map(stepOf));
    for (const tally of [this.total, this.#stepAt(newest).tally]) addGroup(tally, rows);
  }

  get size(): number {
    return this.#steps.size;
  }

  /** The last `most` steps in their order; results of an unknown step come first, beside them. */
  latest(most: number): StepFigures[] {
    const known = [...this.#steps.keys()].filter((step) => step !== null).toSorted((one, other) => one - other);
    const shown = [...(this.#steps.has(null) ? [null] : []), ...known.slice(-most)];
    return shown.map((step) => toStepFigures(step, this.#stepAt(step), this.#times.of(step)));
  }

  /** A call counts at its own step, which may be an older one than the rollout's. */
  #addTimes({ figures, policies, newest_step }: TalliedRow): void {
    if (figures === null) return;
    if (figures.engine_spans === null)
      for (const step of [newest_step, ...policies.map((policy) => policy.step)]) if (step !== null) this.#times.miss(step);
    for (const { step } of figures.engine_spans ?? []) this.#stepAt(step);
    this.#times.add(figures.engine_spans ?? []);
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
function stepOf(row: TalliedRow): number | null {
  return sampledIn(row) === 0 ? row.policy_step : row.newest_step;
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

function toStepFigures(policy_step: number | null, { tally, sources, leftOut }: StepTally, time: EngineTime): StepFigures {
  const apart = [...sources].toSorted(([, one], [, other]) => other.measured - one.measured);
  return {
    policy_step,
    results: tally.results,
    figures: figuresOf({ ...tally, ...time }),
    // A source that is listed has a reward.
    pass_by_source: apart.map(([data_source, { passed, measured }]) => ({ data_source, ...toFigure([passed, measured], "") })),
    sources_left_out: leftOut,
  };
}
