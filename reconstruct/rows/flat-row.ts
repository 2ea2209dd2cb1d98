/** A trainer's row: one array of tokens with what is known of each (full length, unshifted). */
import { z } from "zod";
import { RoutingType } from "../../base/schema/log/token-numbers.ts";
import { PromptPicture } from "../../base/schema/session-log.ts";
import { TrajectoryStatus } from "../../base/schema/trajectory.ts";
import { recordVersions } from "../../base/schema/versions/record-versions.ts";
import { versioned } from "../../base/schema/versions/versioned.ts";

export const FlatSegment = z.strictObject({
  /** Tokens `start` to `end` (exclusive) of the row. */
  start: z.number().int(),
  end: z.number().int(),
  kind: z.enum(["prompt", "sampled", "observation"]),
  call_id: z.string(),
  agent: z.string(),
  node_id: z.string(),
  /** The node's token at which the segment begins: 0 unless a tolerated context joins it in the middle. */
  node_start: z.number().int(),
  /** The weights that sampled its tokens; null where they are unknown, and for tokens that were not sampled. */
  policy_version: z.string().nullable(),
  policy_step: z.number().int().nullable(),
  /**
   * exact: the row's tokens before it are what the engine saw. same_text (selection `tolerant` only): the engine saw the
   * same text in other tokens, so its logprobs belong to a context that differs from the row's.
   */
  context: z.enum(["exact", "same_text"]),
  /** Some of its tokens have a loss mask of 1 in this row. */
  trainable: z.boolean(),
  /** Why a sampled segment is not trained here: a reason of `LeftOutReason`, or `other_row` (trained once, there). */
  reason: z.string().nullable(),
});

/**
 * Numbers of the row's tokens from `start` to before `start + length`. They lie in a file beside the export, named by its hash. The
 * file has a row for each token; `row` is that of the token `start`.
 */
const RowNumbers = z.strictObject({
  start: z.number().int().nonnegative(),
  length: z.number().int().positive(),
  sha256: z.string(),
  row: z.number().int().nonnegative(),
});

/** The experts that the tokens took. Each row of the file has `layers` × `top_k` numbers of `dtype`, little-endian. */
export const RowRouting = RowNumbers.extend({
  layers: z.number().int().positive(),
  top_k: z.number().int().positive(),
  dtype: RoutingType,
});
export type RowRouting = z.infer<typeof RowRouting>;

/** The tokens that the sampling kept at these places. `SupportRecord` of the session log says how the file is written. */
export const RowSupport = RowNumbers.extend({
  /** How many rows the file has: its ids begin behind so many counts. */
  rows: z.number().int().positive(),
});
export type RowSupport = z.infer<typeof RowSupport>;

const RowFields = z.strictObject({
  schema_version: z.literal(recordVersions.row.now),
  trajectory_id: z.string(),
  session_id: z.string(),
  task_id: z.string().nullable(),
  /** All rows of one rollout share it: a trainer that counts rollouts must count these. */
  rollout_id: z.string().nullable(),
  attempt: z.number().int(),
  group_id: z.string().nullable(),
  group_size: z.number().int().nullable(),
  sample_index: z.number().int().nullable(),
  /** Which of the rollout's rows it is, from 0, and how many there are. */
  row_index: z.number().int(),
  row_count: z.number().int(),
  /** The trace of this path, whole or its beginning (packed tree: the first trace; `per-call`: the call's id). */
  trace_id: z.string(),
  /** The agent at the end of that path. */
  agent: z.string(),
  /** What the engine saw and sampled, in order. */
  token_ids: z.array(z.number().int()),
  /** The pictures among them, in their order: the SHA-256 of the bytes, and where the pads stand. Absent: none. */
  media: z.array(PromptPicture).optional(),
  /** One for each token: 1 where it is trained in this row. Over all rows of a trajectory a token is trained once. */
  loss_mask: z.array(z.union([z.literal(0), z.literal(1)])),
  /** One for each token: the log-probability (nats) with which it was sampled; null where it was not, or is unknown. */
  logprobs: z.array(z.number().nullable()),
  /** One for each token: what the trajectory's teacher gave it (nats, temperature 1); null where it was not sampled, or not scored. Absent: no teacher scored it. */
  teacher_logprobs: z.array(z.number().nullable()).optional(),
  /** One list for each token, if the teacher was asked for its likeliest tokens: their ids, the likeliest first; empty where there are none. */
  teacher_top_ids: z.array(z.array(z.number().int())).optional(),
  /** Their logprobs, in the same order. */
  teacher_top_logprobs: z.array(z.array(z.number())).optional(),
  /** In the order of the tokens. A token without an entry has no experts on record. Absent: no token has, or the model has no experts. */
  routing: z.array(RowRouting).optional(),
  /** Which tokens `top_p`, `top_k` and `min_p` kept; the logprobs there are those over them. Absent: nothing was cut, or it is not on record. */
  support: z.array(RowSupport).optional(),
  /** Only in a packed tree, one number per token: its position on its path. null: 0, 1, 2 … */
  position_ids: z.array(z.number().int()).nullable(),
  /** Only in a packed tree, one number per token: the row index of its predecessor on its path; -1 for a first token. */
  parent_index: z.array(z.number().int()).nullable(),
  segments: z.array(FlatSegment),
  harness: z.string().nullable(),
  harness_version: z.string().nullable(),
  /** The session's, as they were given. */
  labels: z.record(z.string(), z.string()),
  /** The weights that sampled what is trained here; null where they are several or unknown: `segments` has each. */
  policy_version: z.string().nullable(),
  policy_step: z.number().int().nullable(),
  /** With which what is trained here was sampled; null where there are several, or none is on record. */
  temperature: z.number().nullable(),
  status: TrajectoryStatus,
  /** Why the harness stopped; null: it is not known. */
  stop_reason: z.string().nullable(),
  /** From the session's first call to the end of its last one; null where none ended. */
  seconds: z.number().nullable(),
  /** The rollout's reward, after a cut-off rule; null: nothing was measured. */
  reward: z.number().nullable(),
  in_baseline: z.boolean(),
  /** What the row's loss is multiplied with, so that the rollout's rows weigh what it would in one (`rewards/row-weight.ts`). */
  weight: z.number(),
  /** Tokens with mask 1 in this row, and in all rows of the rollout. */
  trained_tokens: z.number().int(),
  rollout_trained_tokens: z.number().int(),
  /** Tokens before the first sampled one that this selection trains: the prompt of formats that split prompt and response. */
  prompt_length: z.number().int(),
  /** The row ends at an earlier call than its trace because of the limit on tokens. */
  cut: z.boolean(),
  /** Nothing fits, or nothing is trained: a prefix of a prompt with mask 0 that only holds the rollout's place. */
  dummy: z.boolean(),
});
export const FlatRow = versioned(recordVersions.row, RowFields);
export type FlatRow = z.infer<typeof FlatRow>;
export type FlatSegment = z.infer<typeof FlatSegment>;
