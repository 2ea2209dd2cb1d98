/**
 * verl: one unpadded row a line under the names of its TransferQueue fields. `key` is verl's own
 * `{uid}_{session_id}_{index}`, by which its V1 trainer gives a rollout of several rows one place in the baseline.
 */

import { z } from "zod";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, responseOnly, teacherLogprobs, teacherTop } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { aggregation } from "./rows/aggregation.ts";
import { mediaOf } from "./rows/media.ts";
import { numberSessions } from "./rows/numbering.ts";
import { policyStepsOf } from "./rows/policy-steps.ts";
import { rolloutComponents } from "./rows/rollout-components.ts";
import { routingOf } from "./rows/routing.ts";
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
    experts:
      "`routed_experts`, int16 `[tokens, layers, experts]` from the first token of the prompt; tokens without an entry, and padding, are 0",
    loader: "alidade.loaders.verl",
    proof: { how: "trainer", by: "verl 0.9.1" },
  },
  options: z.strictObject({
    aggregation,
    teacher: z
      .enum(["sampled", "top-k"])
      .default("sampled")
      .describe(
        "what `teacher_logprobs` are about: the sampled token, for verl's estimators, or the teacher's likeliest ones, for its losses with `topk`",
      ),
  }),
  async *write(source, options, report) {
    const sessionOf = numberSessions();
    for await (const trajectory of source.trajectories()) {
      const uid = trajectory.group.id ?? trajectory.trajectory_id;
      const session_id = sessionOf(uid, trajectory);
      for (const row of scoredRows(trajectory, options, report, options.own)) {
        report.rows++;
        yield JSON.stringify(toVerl(row, { uid, session_id, trajectory, teacher: options.own.teacher }));
      }
    }
  },
});

type VerlRow = { uid: string; session_id: number; trajectory: Trajectory; teacher: "sampled" | "top-k" };

function toVerl(row: ScoredRow, { uid, session_id, trajectory, teacher }: VerlRow): Record<string, unknown> {
  const { prompt_ids, response_ids, mask, logprobs } = responseOnly(row);
  const steps = policyStepsOf(row, trajectory);
  // A dummy row has no turn of its own, and verl takes none without a number.
  const calls = row.dummy ? trajectory.calls : callsOfRow(row, trajectory);
  return {
    key: `${uid}_${session_id}_${row.row_index}`,
    uid,
    session_id,
    index: row.row_index,
    prompts: prompt_ids,
    responses: response_ids,
    response_mask: mask,
    rollout_log_probs: logprobs,
    ...teacherOf(row, teacher === "top-k" ? (trajectory.teacher?.top_k ?? 0) : null),
    ...mediaOf(row),
    ...routingOf(row),
    reward_score: row.reward,
    reward_extra_info: rolloutComponents(trajectory),
    num_turns: turnCount(calls, trajectory),
    min_global_steps: steps.min,
    max_global_steps: steps.max,
    data_source: trajectory.task.data_source,
    rollout_id: row.rollout_id,
    trajectory_id: row.trajectory_id,
    agent: row.agent,
    weight: row.weight,
  };
}

type Taught = { teacher_ids?: (number | null)[][]; teacher_logprobs?: (number | null)[][] };

/** `top`: as many of the teacher's tokens at each place; null: the sampled one. */
function teacherOf(row: FlatRow, top: number | null): Taught {
  if (top !== null) return likeliest(row, top);
  const logprobs = teacherLogprobs(row);
  if (logprobs === null) return {};
  const one = <T>(value: T): T[] => [value];
  return { teacher_ids: moved(row.token_ids.map(one), [0]), teacher_logprobs: moved(logprobs.map(one), [0]) };
}

/** verl wants the same number at each place: a trained token with fewer is null, and refused by the loader. */
function likeliest(row: FlatRow, top: number): Taught {
  const found = teacherTop(row);
  if (found === null || top === 0) return {};
  const filler = new Array<number>(top).fill(0);
  const whole = (list: number[] | undefined, at: number): (number | null)[] => {
    if (row.loss_mask[at] === 0) return filler;
    return list?.length === top ? list : new Array<null>(top).fill(null);
  };
  return { teacher_ids: moved(found.ids.map(whole), filler), teacher_logprobs: moved(found.logprobs.map(whole), filler) };
}

/** Entry `i` is about token `i + 1`, and the last one about none. */
function moved<T>(values: T[], last: T): T[] {
  return [...values.slice(1), last];
}
