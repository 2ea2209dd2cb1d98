/** The records of the ledger: what a trainer asks for, what a node takes, and what an attempt came to. No tokens. */
import { z } from "zod";
import { Policy } from "../schema/session-log.ts";
import { Purpose, SessionOptions } from "../schema/session-spec.ts";
import { Task } from "../schema/task.ts";

/** What is left out stays so: the service's own configuration holds then, and not a default of ours. */
const own = <T extends z.ZodType>(field: { unwrap(): T }) => field.unwrap().optional();
const { sampling, budgets, model, train_classes, restore, continuity, policy_mode } = SessionOptions.shape;

/** What all rollouts of a set share. */
export const SetSpec = z.strictObject({
  harness: z.string().min(1).nullable().default(null).describe("a built-in harness by its name; null: the one of the service"),
  samples: z.number().int().min(1).max(10_000).default(4).describe("rollouts of each task: they are one group"),
  retries: z.number().int().min(0).max(100).default(1).describe("more attempts at a rollout after a failure of the infrastructure"),
  purpose: Purpose.extract(["train", "eval"]).default("train").describe("eval: recorded with the harness's own sampling, never trained"),
  sampling: own(sampling),
  budgets: own(budgets),
  model: own(model),
  train_classes: own(train_classes),
  restore: own(restore),
  continuity: own(continuity),
  policy_mode: own(policy_mode),
  priority: z.number().int().min(-1000).max(1000).default(0).describe("sets of a higher one are claimed first"),
  weight: z.number().min(0.001).max(1000).default(1).describe("share of the slots among sets of one priority"),
  labels: z.record(z.string().max(200), z.string().max(2_000)).default({}).describe("the trainer's own words, given back as they are"),
});
export type SetSpec = z.infer<typeof SetSpec>;

/** Rollouts of one group: all of it, or those at some places. */
export const GroupPart = z.strictObject({
  group_key: z
    .string()
    .min(1)
    .max(500)
    // Halves of characters are all kept as the same replacement, so two keys would be one group.
    .refine((key) => key.isWellFormed(), "give whole characters: it has half of one"),
  task: Task,
  /** Places from 0; null: each place of the group. */
  places: z.array(z.number().int().nonnegative()).nullable().default(null),
});
export type GroupPart = z.infer<typeof GroupPart>;

/** Where a trajectory lies (blobs/), and what it must hash to. */
export const PayloadRef = z.strictObject({ key: z.string(), sha256: z.string(), bytes: z.number().int() });
export type PayloadRef = z.infer<typeof PayloadRef>;

/** What an attempt came to, as its node says it. */
export const AttemptResult = z.strictObject({
  /** failed: nothing was measured, by the infrastructure's doing or a mistake of the user's. */
  state: z.enum(["completed", "failed"]),
  reward: z.number().nullable(),
  components: z.record(z.string(), z.number().nullable()),
  stop_reason: z.string().nullable(),
  mask_reason: z.string().nullable().describe("why it is in neither loss nor baseline; null where it counts"),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  session_id: z.string().nullable(),
  policies: z.array(Policy).describe("that its own calls were sampled with, in order"),
  turns: z.number().int(),
  sampled_tokens: z.number().int(),
  trainable_tokens: z.number().int(),
  times: z.record(z.string(), z.number()).describe("Unix milliseconds: queued, init, run, post, done"),
  payload: PayloadRef.nullable().describe("null: no call was recorded"),
});
export type AttemptResult = z.infer<typeof AttemptResult>;

/** How a submitted rollout ended. There is exactly one for each. */
export const ResultRow = AttemptResult.extend({
  state: z.enum(["completed", "failed", "cancelled"]),
  set_id: z.string(),
  group_key: z.string(),
  group_id: z.string(),
  group_size: z.number().int(),
  index: z.number().int().describe("place in the group, from 0"),
  rollout_id: z.string(),
  attempt: z.number().int().describe("0: it was cancelled before the first one began"),
  task_id: z.string(),
  task_hash: z.string(),
  finished: z.number().describe("Unix milliseconds"),
});
export type ResultRow = z.infer<typeof ResultRow>;
