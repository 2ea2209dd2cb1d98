/**
 * AReaL: the tensors of one row a line, under the names of `to_tensor_dict`. Its group normalisation goes by position,
 * so groups are written whole, one after the other, with one row a rollout.
 */
import { z } from "zod";
import { fullLength, perToken } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { mediaOf } from "./rows/media.ts";
import { groupSize, positionalGroups } from "./shapes/positional.ts";

export const areal = defineExporter({
  name: "areal",
  title: "AReaL rows: input_ids, loss_mask, logprobs, versions, rewards",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "B",
    rows: "One row for each rollout: the row with the most trained tokens. Groups follow one another, each with `--group-size` rows; this must be the trainer's `group_size`. A group is left out if the reward of a rollout was not measured. A rollout without trained tokens gives a row of mask 0. `versions` is null if the step of a trained token is unknown; the loader then leaves it out. The loader turns pictures (`media`) into `multi_modal_input` and `mm_token_type_ids`.",
    loader: "alidade.loaders.areal",
    proof: { how: "trainer", by: "areal 1.0.4" },
  },
  options: z.strictObject({ group_size: groupSize }),
  async *write(source, options, report) {
    const { group_size } = options.own;
    const groups = positionalGroups(source, options, report, {
      groupSize: group_size,
      missing: "drop",
      toLine: (row, _trajectory, { group_index, reward }) => {
        const { mask, logprobs } = fullLength(row);
        const steps = perToken(row, (segment) => segment.policy_step);
        const known = mask.every((each, at) => each === 0 || typeof steps[at] === "number");
        return {
          input_ids: row.token_ids,
          loss_mask: mask,
          logprobs,
          // -1 is AReaL's word for a token that was not generated.
          versions: known ? mask.map((each, at) => (each === 1 ? steps[at] : -1)) : null,
          ...mediaOf(row),
          rewards: reward,
          group_index,
          rollout_id: row.rollout_id,
          trajectory_id: row.trajectory_id,
        };
      },
    });
    for await (const lines of groups) for (const line of lines) yield JSON.stringify(line);
  },
});
