/** TRL's GRPOTrainer: what `rollout_func` returns, one completion a line, the completions of a prompt together. */
import { z } from "zod";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, responseOnly } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { mediaOf, namingPictures } from "./rows/media.ts";
import { callsOfRow, inputOf } from "./rows/row-calls.ts";
import { toChatMessages } from "./shapes/chat-messages.ts";
import { groupSize, positionalGroups, type SamplePlace } from "./shapes/positional.ts";

export const trlGrpo = defineExporter({
  name: "trl-grpo",
  title: "TRL GRPO rollout_func rows: prompt_ids, completion_ids, logprobs, env_mask, reward",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "A",
    rows: "Each group has exactly `--group-size` (TRL's `num_generations`) rows, one for each rollout. If a rollout has several rows, the row with the most trained tokens is taken. A rollout without trained tokens gives a row of mask 0 with its reward. A rollout without a measured reward gives a row of mask 0 with reward null, which TRL keeps out of the baseline. The loader turns pictures (`media`, counted from the first token of `prompt_ids`) into the tensors of the model. TRL takes none from a `rollout_func`, so train with the loader's `grpo_trainer()`.",
    loader: "alidade.loaders.trl",
    proof: { how: "trainer", by: "trl 1.16.0" },
  },
  options: z.strictObject({ group_size: groupSize }),
  async *write(source, options, report) {
    const positional = { groupSize: options.own.group_size, missing: "unscored", toLine } as const;
    for await (const lines of positionalGroups(source, options, report, positional)) for (const line of lines) yield JSON.stringify(line);
  },
});

function toLine(row: FlatRow, trajectory: Trajectory, { group_index, position, reward }: SamplePlace): Record<string, unknown> {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  const first = callsOfRow(row, trajectory)[0] ?? trajectory.calls[0];
  return {
    prompt: first === undefined ? [] : inputOf(first, trajectory).map(namingPictures).flatMap(toChatMessages),
    prompt_ids,
    completion_ids: response_ids,
    logprobs,
    env_mask: mask,
    ...mediaOf(row),
    reward,
    group_index,
    position,
    group_id: row.group_id,
    // A placeholder row belongs to no rollout.
    rollout_id: reward === null ? null : row.rollout_id,
    trajectory_id: reward === null ? null : row.trajectory_id,
  };
}
