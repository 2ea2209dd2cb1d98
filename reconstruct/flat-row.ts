/** A trace as a trainer's row: one array of tokens with what is known of each (full length, unshifted). */
import { z } from "zod";

export const FlatSegment = z.strictObject({
  /** Tokens `start` to `end` (exclusive) of the row. */
  start: z.number().int(),
  end: z.number().int(),
  kind: z.enum(["prompt", "sampled", "observation"]),
  call_id: z.string(),
  node_id: z.string(),
  policy_version: z.string().nullable(),
  /** Some of its tokens have a loss mask of 1 in this row. */
  trainable: z.boolean(),
  /** Why a sampled segment is not trained here: a reason of the tree, `grammar`, or `other_row` (trained once, there). */
  reason: z.string().nullable(),
});

export const FlatRow = z.strictObject({
  schema_version: z.literal(1),
  trajectory_id: z.string(),
  /** The trace whose path this is; cut or trimmed to its last trained token it is a prefix of it. */
  trace_id: z.string(),
  rollout_id: z.string().nullable(),
  group_id: z.string().nullable(),
  sample_index: z.number().int().nullable(),
  agent: z.string(),
  /** What the engine saw and sampled, in order. */
  token_ids: z.array(z.number().int()),
  /** One for each token: 1 where it is trained in this row. Over all rows of a trajectory a token is trained once. */
  loss_mask: z.array(z.union([z.literal(0), z.literal(1)])),
  /** One for each token: the log-probability (nats) with which it was sampled; null where it was not, or is unknown. */
  logprobs: z.array(z.number().nullable()),
  segments: z.array(FlatSegment),
  reward: z.number().nullable(),
  in_baseline: z.boolean(),
  /** Tokens before the first sampled one. */
  prompt_length: z.number().int(),
  /** The row ends at an earlier call than its trace because of the limit on tokens. */
  cut: z.boolean(),
});
export type FlatRow = z.infer<typeof FlatRow>;
export type FlatSegment = z.infer<typeof FlatSegment>;
