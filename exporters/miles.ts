/** miles: slime's `Sample` with miles' own fields. It compares rewards by `group_index` and `rollout_id`. */
import { defineExporter, noOptions } from "./exporter.ts";
import { samplesOf } from "./rows/sample.ts";

export const miles = defineExporter({
  name: "miles",
  title: "miles Sample dicts: tokens, response_length, loss_mask, rollout_log_probs, rollout_id",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "A",
    rows: "As many rows as a rollout has branches, together, with one `rollout_id`, over which miles normalises once; groups follow each other, with one `group_index`. A rollout that trains nothing is a row of mask 0 with `remove_sample`. `weight_versions` are the steps of the policy, by which miles finds stale samples (it reads digits only); a policy without a step stands there by its name, and is never stale. `--load-debug-rollout-data` plays the file back. The loader turns pictures (`media`, counted from the first token) into `multimodal_inputs` and `multimodal_train_inputs`.",
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
