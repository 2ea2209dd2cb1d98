/**
 * A rollout with forked contexts gives several rows. Trainers average over rows in different ways, so the row weight
 * follows the trainer's own aggregation. The rows then give the same gradient as the rollout in one row.
 */
export const aggregations = ["token_mean", "sequence_mean", "sequence_sum", "rollout_mean"] as const;

/**
 * token_mean: one mean over all trained tokens of the batch (verl `token-mean`, TRL `dapo`, prime-rl).
 * sequence_mean: a mean over each row's tokens, then over rows (GRPO as published, verl `seq-mean-token-mean`). A row
 * weighs its share of the rollout's tokens; where the trainer divides by its number of rows instead of the sum of the
 * weights, the whole batch is scaled by rollouts / rows, which no single row can know.
 * sequence_sum: each row's sum over a constant (Dr. GRPO, verl `seq-mean-token-sum-norm`).
 * rollout_mean: the trainer divides by the mask sum of all rows with one `rollout_id` (slime, miles).
 */
export type Aggregation = (typeof aggregations)[number];

/** `trained`: tokens with mask 1 in the row; `ofRollout`: in all rows of its rollout. 0 for a row that trains nothing. */
export function rowWeight(aggregation: Aggregation, trained: number, ofRollout: number): number {
  if (trained === 0) return 0;
  return aggregation === "sequence_mean" ? trained / ofRollout : 1;
}
