/**
 * OpenRLHF: what its agent executor returns for one sample a line (`observation_tokens`, `action_ranges`, …). It knows
 * one row a rollout and finds groups by position, so groups are written whole, one after the other.
 */
import { z } from "zod";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { fullLength } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { mediaOf } from "./rows/media.ts";
import { callsOfRow, inputOf } from "./rows/row-calls.ts";
import { runsOf } from "./rows/trained-runs.ts";
import { groupSize, positionalGroups } from "./shapes/positional.ts";

export const openrlhf = defineExporter({
  name: "openrlhf",
  title: "OpenRLHF executor results: observation_tokens, action_ranges, rollout_log_probs, reward",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "B",
    rows: "One row a rollout, the one with the most trained tokens; groups one after the other, each with `--group-size` rows, which must be the trainer's `n_samples_per_prompt`. A group with a rollout that was not measured is left out; a rollout that trains nothing is a row without action ranges. The loader turns pictures (`media`) into `images` and `mm_train_inputs`. OpenRLHF takes them only without `--ds.packing_samples`.",
    loader: "alidade.loaders.openrlhf",
    proof: { how: "trainer", by: "openrlhf 0.11.2" },
  },
  options: z.strictObject({ group_size: groupSize }),
  async *write(source, options, report) {
    const { group_size } = options.own;
    const groups = positionalGroups(source, options, report, {
      groupSize: group_size,
      missing: "drop",
      toLine: (row, trajectory, { reward }) => {
        const { mask, logprobs } = fullLength(row);
        const calls = callsOfRow(row, trajectory);
        return {
          prompt: userTextOf(calls[0] ?? trajectory.calls[0], trajectory),
          label: row.task_id ?? "",
          images: null,
          mm_train_inputs: null,
          reward,
          scores: reward,
          observation_tokens: row.token_ids,
          action_ranges: runsOf(mask).map(({ start, end }) => [start, end]),
          rollout_log_probs: logprobs,
          ...mediaOf(row),
          truncated: row.cut || calls.at(-1)?.finish_reason === "length",
          extra_logs: {},
        };
      },
    });
    for await (const lines of groups) for (const line of lines) yield JSON.stringify(line);
  },
});

/** The user messages of a call; OpenRLHF only logs them. */
function userTextOf(call: CallRecord | undefined, trajectory: Trajectory): string {
  if (call === undefined) return "";
  const parts = inputOf(call, trajectory).flatMap(({ role, parts }) => (role === "user" ? parts : []));
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}
