/** TRL's SFTTrainer, already tokenised: the tokens as they were sampled, with labels only where the policy spoke. */
import { z } from "zod";
import { type FlatRow, underRules } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { mediaOf } from "./rows/media.ts";
import { isGoodEnough, minReward } from "./rows/min-reward.ts";
import { rowsOf } from "./rows/rows.ts";

/** The loss of torch and of TRL's collator skips this label. */
const ignored = -100;

export const trlSft = defineExporter({
  name: "trl-sft",
  title: "TRL SFT rows, tokenised: input_ids, labels",
  objective: "sft",
  extension: "jsonl",
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "B",
    rows: "As many rows as a rollout has branches; each sampled token has a label in one row only. Without token ids use `chat`. `SFTTrainer` reads these rows as they stand, if they show no pictures. For pictures (`media`) train with the loader's `sft_trainer()`. TRL's own trainer refuses rows with `images`, the names of their pictures, because it would tokenise messages anew.",
    loader: "alidade.loaders.trl",
    proof: { how: "trainer", by: "trl 1.16.0" },
  },
  options: z.strictObject({ min_reward: minReward }),
  async *write(source, options, report) {
    for await (const trajectory of source.trajectories()) {
      if (!isGoodEnough(underRules(trajectory, options), options.own.min_reward, report)) continue;
      for (const row of rowsOf(trajectory, options, report, { objective: "sft" })) {
        // A place holder of a rollout has nothing to imitate.
        if (row.dummy) continue;
        report.rows++;
        const labels = row.token_ids.map((id, at) => (row.loss_mask[at] === 1 ? id : ignored));
        yield JSON.stringify({
          input_ids: row.token_ids,
          labels,
          ...picturesOf(row),
          reward: row.reward,
          trajectory_id: row.trajectory_id,
          rollout_id: row.rollout_id,
          group_id: row.group_id,
        });
      }
    }
  },
});

/**
 * Without `images` TRL's own trainer would take a row with pictures for text, and train the model on pads without pixels. With it,
 * TRL wants a model that sees, and messages.
 */
function picturesOf(row: FlatRow): Record<string, unknown> {
  const { media = [] } = row;
  return media.length === 0 ? {} : { ...mediaOf(row), images: media.map(({ sha256 }) => sha256) };
}
