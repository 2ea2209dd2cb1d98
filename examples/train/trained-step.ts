/** The trainer's report on one step, one JSON line. */
import { z } from "zod";

export const TrainedStep = z.strictObject({
  /** Number of updates before this step. */
  step: z.int().nonnegative(),
  /** Mean reward over all measured rollouts, before the update of this step. */
  reward: z.number(),
  /** Mean reward of each task; null: no rollout was measured. */
  rewards: z.record(z.string(), z.number().nullable()),
  rollouts: z.int().nonnegative(),
  /** Largest |ratio − 1| of a trained token before the first update on the batch. */
  worst_ratio: z.number().nonnegative(),
  /** Age of the oldest rollout's weights, in updates; null: unknown. */
  lag: z.int().nonnegative().nullable(),
  trained_tokens: z.int().nonnegative(),
  /** `update` is null if the trainer loads weights while it waits for its batch. `sample` then contains this time. */
  seconds: z.strictObject({ update: z.number().nullable(), sample: z.number(), train: z.number() }),
});
export type TrainedStep = z.infer<typeof TrainedStep>;
