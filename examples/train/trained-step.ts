/** What the trainer says of a step, one JSON line. */
import { z } from "zod";

export const TrainedStep = z.strictObject({
  /** Updates before it. */
  step: z.int().nonnegative(),
  /** Mean over all rollouts that were measured, before the update of this step. */
  reward: z.number(),
  /** The same by task; null where nothing was measured. */
  rewards: z.record(z.string(), z.number().nullable()),
  rollouts: z.int().nonnegative(),
  /** Largest |ratio − 1| of a trained token before the first update on the batch. */
  worst_ratio: z.number().nonnegative(),
  /** Updates that the oldest rollout was sampled before; null: not known. */
  lag: z.int().nonnegative().nullable(),
  trained_tokens: z.int().nonnegative(),
  seconds: z.strictObject({ update: z.number(), sample: z.number(), train: z.number() }),
});
export type TrainedStep = z.infer<typeof TrainedStep>;
