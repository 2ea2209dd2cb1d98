/**
 * Flat rows for RL: one token sequence a line with loss mask and logprobs at full length, unshifted, and segments.
 * Calls that cannot be trained by their logprobs are masked and reported; a row with nothing to train is not written.
 * Shape: `reconstruct/flat-row.ts`.
 */
import { flattenLazily } from "../reconstruct/index.ts";
import type { Exporter } from "./exporter.ts";
import { addLeftOut } from "./left-out.ts";

export const flat: Exporter = {
  name: "flat",
  title: "one token sequence a line: token_ids, loss_mask, logprobs, segments, reward",
  objective: "rl",
  async *lines(trajectories, options, report) {
    for await (const trajectory of trajectories) {
      report.trajectories++;
      const { rows, left_out } = flattenLazily(trajectory, options);
      addLeftOut(report, left_out);
      for (const row of rows) {
        report.rows++;
        yield JSON.stringify(row);
      }
    }
  },
};
