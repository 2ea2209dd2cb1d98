/** What results add up to. The service folds the rows of its ledger with it, and `alidade stats --figures` those of a run. */
import { z } from "zod";
import { passReward } from "../../base/schema/rollout.ts";
import type { ResultRow } from "../ledger/index.ts";

export { passReward };

const counts = [
  "results",
  "cancelled",
  // Results with a reward, the sum of these, and those of `passReward` or more.
  "measured",
  "reward_sum",
  "passed",
  // Results without a reward, those that were cancelled aside.
  "unmeasured",
  "sampled_tokens",
  "trainable_tokens",
  // Whole groups with two or more rewards that count, and those of them whose rewards are all equal.
  "compared_groups",
  "equal_groups",
  // Results with a known staleness, and the stale ones of them.
  "dated",
  "stale",
  // Attempts with figures, and the cut ones of them.
  "recorded",
  "cut",
  // Calls whose edge to their parent is known, and those of them that do not go on token for token.
  "edges",
  "inexact_edges",
  // As in `AttemptFigures`.
  "row_tokens",
  "tree_tokens",
  "prompt_tokens",
  "cached_tokens",
] as const;

export const ResultTally = z.record(z.enum(counts), z.number());
export type ResultTally = z.infer<typeof ResultTally>;

export type TalliedRow = Pick<
  ResultRow,
  | "state"
  | "reward"
  | "mask_reason"
  | "sampled_tokens"
  | "trainable_tokens"
  | "stale"
  | "figures"
  | "newest_step"
  | "policy_step"
  | "policies"
>;

export function emptyTally(): ResultTally {
  return Object.fromEntries(counts.map((name) => [name, 0])) as ResultTally;
}

export function addRow(tally: ResultTally, row: TalliedRow): void {
  tally.results += 1;
  tally.cancelled += row.state === "cancelled" ? 1 : 0;
  tally.sampled_tokens += sampledIn(row);
  tally.trainable_tokens += row.trainable_tokens;
  tally.dated += row.stale === null ? 0 : 1;
  tally.stale += row.stale === true ? 1 : 0;
  addReward(tally, row);
  addFigures(tally, row);
}

/** Tokens that this attempt sampled. Rows of an earlier version count what a fork replayed among them, under `replayed`. */
export function sampledIn({ sampled_tokens, figures }: Pick<TalliedRow, "sampled_tokens" | "figures">): number {
  return sampled_tokens - (figures?.excluded?.replayed ?? 0);
}

function addReward(tally: ResultTally, { state, reward }: TalliedRow): void {
  if (reward === null) tally.unmeasured += state === "cancelled" ? 0 : 1;
  else {
    tally.measured += 1;
    tally.reward_sum += reward;
    tally.passed += reward >= passReward ? 1 : 0;
  }
}

function addFigures(tally: ResultTally, { figures }: TalliedRow): void {
  if (figures === null) return;
  const { is_cut, edges, row_tokens, tree_tokens, prompt_tokens, cached_tokens } = figures;
  const inexact = (edges.same_text ?? 0) + (edges.diverged ?? 0);
  tally.recorded += 1;
  tally.cut += is_cut ? 1 : 0;
  tally.edges += inexact + (edges.exact ?? 0);
  tally.inexact_edges += inexact;
  tally.row_tokens += row_tokens;
  tally.tree_tokens += tree_tokens;
  tally.prompt_tokens += prompt_tokens;
  tally.cached_tokens += cached_tokens;
}

/** All rows of one group. What is in no baseline says nothing of it. */
export function addGroup(tally: ResultTally, rows: readonly TalliedRow[]): void {
  const rewards = rows.flatMap(({ reward, mask_reason }) => (reward === null || mask_reason !== null ? [] : [reward]));
  if (rewards.length < 2) return;
  tally.compared_groups += 1;
  tally.equal_groups += rewards.every((reward) => reward === rewards[0]) ? 1 : 0;
}
