/**
 * Flat rows for RL: one token sequence a line with loss mask and logprobs at full length, unshifted, and segments.
 * Calls that cannot be trained by their logprobs are masked and reported. A rollout with nothing to train is no row, but
 * one of which nothing fits keeps its place by a dummy.
 * Shape: `reconstruct/rows/flat-row.ts`.
 */
import { z } from "zod";
import { defineExporter } from "./exporter.ts";
import { aggregation } from "./rows/aggregation.ts";
import { rowsOf } from "./rows/rows.ts";
import { keptSets } from "./rows/support.ts";

export const flat = defineExporter({
  name: "flat",
  title: "one token sequence a line: token_ids, loss_mask, logprobs, segments, reward",
  objective: "rl",
  extension: "jsonl",
  saysPackedRows: true,
  namesPictures: true,
  saysPictures: true,
  saysSupport: true,
  docs: {
    alignment: "B",
    rows: "One row for each branch of a rollout with trained tokens, or one dummy row (mask 0, `dummy: true`) if no row fits. Rows are not padded. Missing logprobs are null. `media` says which picture stands at which tokens: `[{sha256, start, length}]`. The bytes lie in `media/` beside the file; `alidade.media` makes tensors of them. `routing` names experts in the same way.",
    teacher: "`teacher_logprobs`",
    experts: "`alidade.routing.experts` returns them as an array",
    support: "`alidade.support.sets` returns a list of ids for each token, with `--kept-sets train`",
    loader: "alidade.rows",
    proof: { how: "ours", by: "the reader in the Python package" },
  },
  options: z.strictObject({ aggregation, kept_sets: keptSets }),
  async *write(source, options, report) {
    for await (const trajectory of source.trajectories()) {
      for (const row of rowsOf(trajectory, options, report, {
        aggregation: options.own.aggregation,
        readsSupport: options.own.kept_sets === "train",
      })) {
        report.rows++;
        if (row.dummy) report.dummy_rows++;
        yield JSON.stringify(row);
      }
    }
  },
});
