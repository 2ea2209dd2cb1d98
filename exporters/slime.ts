/** slime: one `Sample.to_dict()` a line; `alidade.loaders.slime` makes the file that `--load-debug-rollout-data` reads. */
import { defineExporter, noOptions } from "./exporter.ts";
import { samplesOf } from "./rows/sample.ts";

export const slime = defineExporter({
  name: "slime",
  title: "slime Sample dicts: tokens, response_length, loss_mask, rollout_log_probs, rollout_id",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "A",
    rows: "As many rows as a rollout has branches, together, with one `rollout_id`; groups follow each other, with one `group_index`. As soon as one rollout has two rows slime makes the whole batch one group: name the loader's `post_process_rewards` in `--custom-reward-post-process-path`. A rollout that trains nothing is a row of mask 0 with `remove_sample`. `--load-debug-rollout-data` trains offline only: slime then starts no engine and updates none. Online, the seam is its `--custom-generate-function-path`. The loader turns pictures (`media`, counted from the first token) into `multimodal_inputs` and `multimodal_train_inputs`.",
    teacher: "`teacher_log_probs`",
    experts: "`rollout_routed_experts`, int32, for all tokens but the last",
    loader: "alidade.loaders.slime",
    proof: { how: "by_hand", by: "its source of August 2026" },
  },
  options: noOptions,
  async *write(source, options, report) {
    for await (const sample of samplesOf(source, options, report)) yield JSON.stringify(sample);
  },
});
