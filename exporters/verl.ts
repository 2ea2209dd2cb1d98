/**
 * verl: one unpadded row a line under the names of its TransferQueue fields. `key` is verl's own
 * `{uid}_{session_id}_{index}`, by which its V1 trainer gives a rollout of several rows one place in the baseline.
 */

import { z } from "zod";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, responseOnly, teacherLogprobs } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { aggregation } from "./rows/aggregation.ts";
import { mediaOf } from "./rows/media.ts";
import { numberSessions } from "./rows/numbering.ts";
import { policyStepsOf } from "./rows/policy-steps.ts";
import { rolloutComponents } from "./rows/rollout-components.ts";
import { callsOfRow, turnCount } from "./rows/row-calls.ts";
import { type ScoredRow, scoredRows } from "./shapes/scored-rows.ts";

export const verl = defineExporter({
  name: "verl",
  title: "verl rows: prompts, responses, response_mask, rollout_log_probs, reward_score, key",
  objective: "rl",
  extension: "jsonl",
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "A",
    rows: "As many rows as a rollout has branches, all with its reward; verl's V1 trainer counts them once by `key`, its classic one counts every row. The loader pads prompts left and responses right and refuses what is longer. A rollout that trains nothing is a row of mask 0. The loader turns pictures (`media`, counted from the first token of `prompts`) into `multi_modal_inputs` and positions. It needs verl's own processor for this.",
    teacher: "`teacher_ids`, `teacher_logprobs`",
    loader: "alidade.loaders.verl",
    proof: { how: "trainer", by: "verl 0.9.1" },
  },
  options: z.strictObject({ aggregation }),
  async *write(source, options, report) {
    const sessionOf = numberSessions();
    for await (const trajectory of source.trajectories()) {
      const uid = trajectory.group.id ?? trajectory.trajectory_id;
      const session_id = sessionOf(uid, trajectory);
      for (const row of scoredRows(trajectory, options, report, options.own)) {
        report.rows++;
        yield JSON.stringify(toVerl(row, uid, session_id, trajectory));
      }
    }
  },
});

function toVerl(row: ScoredRow, uid: string, session_id: number, trajectory: Trajectory): Record<string, unknown> {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  const steps = policyStepsOf(row, trajectory);
  return {
    key: `${uid}_${session_id}_${row.row_index}`,
    uid,
    session_id,
    index: row.row_index,
    prompts: prompt_ids,
    responses: response_ids,
    response_mask: mask,
    rollout_log_probs: logprobs,
    ...teacherOf(row),
    ...mediaOf(row),
    reward_score: row.reward,
    reward_extra_info: rolloutComponents(trajectory),
    num_turns: turnCount(callsOfRow(row, trajectory), trajectory),
    min_global_steps: steps.min,
    max_global_steps: steps.max,
    data_source: trajectory.task.data_source,
    rollout_id: row.rollout_id,
    trajectory_id: row.trajectory_id,
    agent: row.agent,
    weight: row.weight,
  };
}

/** The last entry is about no token. */
function teacherOf(row: FlatRow): { teacher_ids?: number[][]; teacher_logprobs?: (number | null)[][] } {
  const logprobs = teacherLogprobs(row);
  if (logprobs === null) return {};
  const moved = <T>(values: T[], last: T): T[][] => [...values.slice(1), last].map((value) => [value]);
  return { teacher_ids: moved(row.token_ids, 0), teacher_logprobs: moved(logprobs, 0) };
}
