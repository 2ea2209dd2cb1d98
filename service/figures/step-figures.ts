/** The figures of a policy step: what each one is, and what it is made of. Prints, gauges and docs/figures.md follow this table. */
import { mostEngineSpans } from "../ledger/index.ts";
import type { EngineTime } from "./engine-times.ts";
import type { ResultTally } from "./tally.ts";
import { passReward } from "./tally.ts";

/** `part / whole`; null with the reason where there is nothing to divide by. */
export type Figure = { value: number | null; part: number; whole: number; reason: string | null };

type FigureName = (typeof stepFigures)[number]["name"];

export type StepFigures = {
  /** null: results whose step is unknown. */
  policy_step: number | null;
  results: number;
  figures: Record<FigureName, Figure>;
  /** The pass ratio by the data source of the tasks (null: they name none), the most frequent first. */
  pass_by_source: ({ data_source: string | null } & Figure)[];
  /** Rewards of further data sources. */
  sources_left_out: number;
};

type FigureMeaning = { name: string; what: string; unknown: string; of(tally: StepCounts): [part: number, whole: number] };

type StepCounts = ResultTally & EngineTime;

export const stepFigures = [
  {
    name: "pass_ratio",
    what: `results with a reward of ${passReward} or more / results with a reward`,
    unknown: "no result has a reward",
    of: (tally) => [tally.passed, tally.measured],
  },
  {
    name: "no_variance_ratio",
    what: "whole groups whose rewards that count are all equal / whole groups with two or more rewards that count",
    unknown: "no whole group has two rewards that count",
    of: (tally) => [tally.equal_groups, tally.compared_groups],
  },
  {
    name: "null_ratio",
    what: "results without a reward / results, both without cancelled ones",
    unknown: "all results were cancelled",
    of: (tally) => [tally.unmeasured, tally.unmeasured + tally.measured],
  },
  {
    name: "cancelled_ratio",
    what: "cancelled results, by a trainer or a group tool / results",
    unknown: "there is no result",
    of: (tally) => [tally.cancelled, tally.results],
  },
  {
    name: "cut_ratio",
    what: "rollouts whose harness a budget, a full context or the clock stopped / rollouts with a recorded call",
    unknown: "no rollout has a recorded call",
    of: (tally) => [tally.cut, tally.recorded],
  },
  {
    name: "stale_ratio",
    what: "results beyond max_version_lag when they ended / results whose lag is known, in a set with that bound",
    unknown: "no result has a known lag and a max_version_lag to hold it against",
    of: (tally) => [tally.stale, tally.dated],
  },
  {
    name: "inexact_edge_ratio",
    what: "calls that do not go on from their parent token for token (same_text, diverged) / calls with a parent whose edge is known",
    unknown: "no call has a parent to which its edge is known",
    of: (tally) => [tally.inexact_edges, tally.edges],
  },
  {
    name: "row_inflation",
    what: "tokens of the rows that a trainer without options gets / the same with each token of the tree once",
    unknown: "no rollout has tokens in rows",
    of: (tally) => [tally.row_tokens, tally.tree_tokens],
  },
  {
    name: "cache_hit_ratio",
    what: "prompt tokens that the engine found in its prefix cache / prompt tokens of the policy's calls whose engine tells it",
    unknown: "no engine tells how many prompt tokens it found in its cache",
    of: (tally) => [tally.cached_tokens, tally.prompt_tokens],
  },
  {
    name: "engine_busy_ratio",
    what: "time in which an engine has a call of the step / time from the step's first call at any engine to its last end, over all engines",
    unknown: `the times of the step's calls are not all known: an earlier version wrote a result, a rollout has more than ${mostEngineSpans} spans, a result came very late, or no call has a known step`,
    of: (tally) => [tally.busy_ms, tally.engine_ms],
  },
] as const satisfies readonly FigureMeaning[];

export function figuresOf(tally: StepCounts): StepFigures["figures"] {
  return Object.fromEntries(stepFigures.map(({ name, unknown, of }) => [name, toFigure(of(tally), unknown)])) as StepFigures["figures"];
}

export function toFigure([part, whole]: readonly [number, number], unknown: string): Figure {
  return whole === 0 ? { value: null, part, whole, reason: unknown } : { value: part / whole, part, whole, reason: null };
}
