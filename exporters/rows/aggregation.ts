/** For the schema of formats whose rows carry a weight. */
import { z } from "zod";
import { aggregations } from "../../reconstruct/index.ts";

export const aggregation = z
  .enum(aggregations)
  .default("token_mean")
  .describe("how the trainer averages its loss: decides the `weight` by which the rows of one rollout weigh what it would in one");
