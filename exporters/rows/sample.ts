/**
 * The `Sample` of slime and of its fork miles. All rows of one rollout carry its `rollout_id`; both trainers count them as
 * one in the loss. The response's text stays empty, because the observations in it were not decoded.
 */

import type { Trajectory } from "../../base/schema/trajectory.ts";
import { type FlatRow, responseOnly, teacherLogprobs } from "../../reconstruct/index.ts";
import type { ExportOptions, ExportReport } from "../exporter.ts";
import { toChatMessages } from "../shapes/chat-messages.ts";
import { scoredRows } from "../shapes/scored-rows.ts";
import type { TrajectorySource } from "../source/source.ts";
import { mediaOf, namingPictures } from "./media.ts";
import { numberIds } from "./numbering.ts";
import { policyStepsOf } from "./policy-steps.ts";
import { routingOf } from "./routing.ts";
import { callsOfRow, inputOf } from "./row-calls.ts";

type TrainingSample = Record<string, unknown>;

/** Samples, the rollouts of a group one after the other and the rows of a rollout too. */
export async function* samplesOf(
  source: TrajectorySource,
  options: ExportOptions<unknown>,
  report: ExportReport,
): AsyncIterable<TrainingSample> {
  const rolloutNumber = numberIds();
  let group_index = -1;
  let index = 0;
  for await (const group of source.groups()) {
    let isNew = true;
    for (const member of group.members) {
      const trajectory = await member.read();
      for (const row of scoredRows(trajectory, options, report)) {
        if (isNew) group_index++;
        isNew = false;
        report.rows++;
        yield toSample(row, trajectory, { group_index, index: index++, rollout_id: rolloutNumber(trajectory.trajectory_id) });
      }
    }
  }
}

function toSample(
  row: FlatRow,
  trajectory: Trajectory,
  numbers: { group_index: number; index: number; rollout_id: number },
): TrainingSample {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  const teacher = teacherLogprobs(row);
  const calls = callsOfRow(row, trajectory);
  const first = calls[0] ?? trajectory.calls[0];
  return {
    ...numbers,
    prompt: first === undefined ? [] : inputOf(first, trajectory).map(namingPictures).flatMap(toChatMessages),
    tokens: [...prompt_ids, ...response_ids],
    response: "",
    response_length: response_ids.length,
    loss_mask: mask,
    rollout_log_probs: logprobs,
    ...(teacher && { teacher_log_probs: teacher.slice(prompt_ids.length) }),
    ...mediaOf(row),
    ...routingOf(row),
    reward: row.reward,
    // miles counts how old a sample is by those of them that are numbers; slime only shows them.
    weight_versions: policyStepsOf(row, trajectory).numbers,
    status: row.cut || trajectory.status === "cut" || calls.at(-1)?.finish_reason === "length" ? "truncated" : "completed",
    remove_sample: row.dummy,
    label: null,
    metadata: {
      alidade: {
        trajectory_id: row.trajectory_id,
        rollout_id: row.rollout_id,
        group_id: row.group_id,
        sample_index: row.sample_index,
        row_index: row.row_index,
        agent: row.agent,
      },
    },
  };
}
