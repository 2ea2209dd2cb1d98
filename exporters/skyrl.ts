/**
 * SkyRL: one row of a `GeneratorOutput` a line, under the names of its columns and with what they hold for one row. A rollout of
 * several rows is step-wise: they stand together, and only the last one has `is_last_step` and the reward.
 */

import type { Trajectory } from "../base/schema/trajectory.ts";
import { responseOnly } from "../reconstruct/index.ts";
import { defineExporter, noOptions } from "./exporter.ts";
import { mediaOf } from "./rows/media.ts";
import { numberSessions } from "./rows/numbering.ts";
import { routingOf } from "./rows/routing.ts";
import { callsOfRow } from "./rows/row-calls.ts";
import { type ScoredRow, scoredRows } from "./shapes/scored-rows.ts";

export const skyrl = defineExporter({
  name: "skyrl",
  title: "SkyRL GeneratorOutput rows: prompt_token_ids, response_ids, rewards, loss_masks, rollout_logprobs",
  objective: "rl",
  extension: "jsonl",
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "A",
    rows: "As many rows as a rollout has branches, one after the other; the last has `is_last_step` and the reward, so that SkyRL counts the rollout once. The loader refuses several rows unless `step_wise`. A rollout that trains nothing is a row of mask 0. The loader turns pictures (`media`, counted from the first token of the prompt) into `pixel_values` and `image_grid_thw`. SkyRL cannot merge step-wise rows with pictures, so leave `generator.merge_stepwise_output` off.",
    experts:
      "`rollout_expert_indices`, one array of uint8 or int16 a row, from the first token of the prompt. SkyRL cannot merge step-wise rows with experts, so leave `generator.merge_stepwise_output` off",
    loader: "alidade.loaders.skyrl",
    proof: { how: "trainer", by: "skyrl 0.4.0" },
  },
  options: noOptions,
  async *write(source, options, report) {
    const sessionOf = numberSessions();
    for await (const trajectory of source.trajectories()) {
      const instance_id = trajectory.group.id ?? trajectory.trajectory_id;
      const id = { instance_id, repetition_id: sessionOf(instance_id, trajectory) };
      for (const row of scoredRows(trajectory, options, report)) {
        report.rows++;
        yield JSON.stringify(toSkyRl(row, id, trajectory));
      }
    }
  },
});

function toSkyRl(row: ScoredRow, trajectory_id: Record<string, unknown>, trajectory: Trajectory): Record<string, unknown> {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  const last = row.row_index === row.row_count - 1;
  return {
    prompt_token_ids: prompt_ids,
    response_ids,
    rewards: response_ids.map((_, at) => (last && at === response_ids.length - 1 ? row.reward : 0)),
    loss_masks: mask,
    rollout_logprobs: logprobs,
    ...mediaOf(row),
    ...routingOf(row),
    stop_reasons: callsOfRow(row, trajectory).at(-1)?.finish_reason === "length" ? "length" : "stop",
    trajectory_ids: trajectory_id,
    is_last_step: last,
  };
}
