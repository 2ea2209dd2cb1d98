/**
 * tinker: one `Datum` a line, inputs without the last token and targets without the first. Advantages need the whole
 * group, and tinker-cookbook computes them its own way: the loader hands it the rewards, and fills them in.
 */
import { shifted, teacherLogprobs } from "../reconstruct/index.ts";
import { defineExporter, noOptions } from "./exporter.ts";
import { mediaWithin } from "./rows/media.ts";
import { numberSessions } from "./rows/numbering.ts";
import { scoredRows } from "./shapes/scored-rows.ts";

export const tinker = defineExporter({
  name: "tinker",
  title: "tinker Datum: model_input, target_tokens, logprobs, mask; reward and group beside it",
  objective: "rl",
  extension: "jsonl",
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "C",
    rows: "One Datum for each branch of a rollout; the rollout's reward counts once in its group. Rows are not padded. A rollout without trained tokens gives a Datum of mask 0. The loader turns pictures (`media`) into image chunks, which tinker takes as PNG or JPEG.",
    teacher: "`teacher_logprobs`, beside the Datum",
    loader: "alidade.loaders.tinker",
    proof: { how: "trainer", by: "tinker 0.38.0, tinker-cookbook 0.6.1" },
  },
  options: noOptions,
  async *write(source, options, report) {
    const sessionOf = numberSessions();
    for await (const trajectory of source.trajectories()) {
      const group_id = trajectory.group.id ?? trajectory.trajectory_id;
      const index = sessionOf(group_id, trajectory);
      for (const row of scoredRows(trajectory, options, report)) {
        const { input_ids, target_ids, mask, logprobs } = shifted(row);
        const teacher = teacherLogprobs(row);
        report.rows++;
        yield JSON.stringify({
          model_input: input_ids,
          loss_fn_inputs: { target_tokens: target_ids, logprobs, mask },
          ...mediaWithin(row, 0, input_ids.length),
          ...(teacher && { teacher_logprobs: teacher.slice(1) }),
          reward: row.reward,
          group_id,
          sample_index: index,
          rollout_id: row.rollout_id,
          trajectory_id: row.trajectory_id,
        });
      }
    }
  },
});
