/** The option of formats with weighted rows. */
import { z } from "zod";
import { aggregations } from "../../reconstruct/index.ts";

export const aggregation = z
  .enum(aggregations)
  .default("token_mean")
  .describe(
    "how the trainer averages its loss; it sets the rows' `weight`, so that the rows of one rollout together weigh as much as one row would",
  );
