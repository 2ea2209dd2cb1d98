/** TRL's asynchronous GRPO: one `RolloutSample` a line, with the advantage that its queue wants ready. */
import { z } from "zod";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, fullLength, teacherLogprobs, teacherTop } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { advantageOption, rowsWithAdvantage } from "./rows/advantages.ts";
import { numberIds } from "./rows/numbering.ts";
import { policyStepsOf } from "./rows/policy-steps.ts";
import { callsOfRow, inputOf, outputOf, trainedCalls } from "./rows/row-calls.ts";
import { toChatMessages } from "./shapes/chat-messages.ts";
import { addLeftOut } from "./shapes/left-out.ts";

export const trlAsync = defineExporter({
  name: "trl-async",
  title: "TRL async GRPO RolloutSample rows: input_ids, completion_mask, old_log_probs, advantage, model_version",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  docs: {
    alignment: "B",
    rows: "As many rows as a rollout has branches, each with the rollout's advantage. No dummy rows: advantages are written, not computed from rows. `model_version` is the oldest step that sampled the row, by which TRL drops stale ones; a row of which it is unknown is left out with the reason `no_policy_step`.",
    teacher: "with `--top-k`: `teacher_topk_ids`, `teacher_topk_logprobs`",
    pictures:
      "a `RolloutSample` has no field for them, and the trainer's packed rows have ids, straight positions and a mask, but no pixels.",
    loader: "alidade.loaders.trl",
    proof: { how: "trainer", by: "trl 1.16.0" },
  },
  options: z.strictObject({
    advantage: advantageOption("grpo"),
    model_version: z.number().int().nonnegative().optional().describe("step of rows without a recorded one"),
  }),
  async *write(source, options, report) {
    const groupNumber = numberIds();
    for await (const { row, advantage, trajectory } of rowsWithAdvantage(source, options, report)) {
      const model_version = policyStepsOf(row, trajectory).min ?? options.own.model_version ?? null;
      if (model_version === null) addLeftOut(report, { no_policy_step: trainedCalls(row) });
      else {
        report.rows++;
        const group_id = groupNumber(row.group_id ?? row.trajectory_id);
        yield JSON.stringify({ ...toSample(row, trajectory), advantage, model_version, group_id });
      }
    }
  },
});

function toSample(row: FlatRow, trajectory: Trajectory): Record<string, unknown> {
  const { mask, logprobs } = fullLength(row);
  const calls = callsOfRow(row, trajectory);
  const [first, last] = [calls[0], calls.at(-1)];
  const prompt = first === undefined ? [] : inputOf(first, trajectory);
  const completion = last === undefined ? [] : [...inputOf(last, trajectory).slice(prompt.length), ...outputOf(last, trajectory)];
  return {
    prompt: prompt.flatMap(toChatMessages),
    completion: completion.flatMap(toChatMessages),
    input_ids: row.token_ids,
    completion_mask: mask,
    old_log_probs: logprobs,
    ...teacherOf(row),
    metrics: { reward: row.reward },
    rollout_id: row.rollout_id,
    trajectory_id: row.trajectory_id,
  };
}

/** As TRL's distillation reads a teacher's answer: its likeliest tokens, and the sampled one where it is none of them. */
function teacherOf(row: FlatRow): { teacher_topk_ids?: number[][]; teacher_topk_logprobs?: number[][] } {
  const [top, own] = [teacherTop(row), teacherLogprobs(row)];
  if (top === null || own === null) return {};
  const teacher_topk_ids: number[][] = [];
  const teacher_topk_logprobs: number[][] = [];
  for (const [at, id] of row.token_ids.entries()) {
    const [ids = [], logprobs = [], logprob = null] = [top.ids[at], top.logprobs[at], own[at]];
    const isApart = row.loss_mask[at] === 1 && logprob !== null && !ids.includes(id);
    teacher_topk_ids.push(isApart ? [...ids, id] : ids);
    teacher_topk_logprobs.push(isApart ? [...logprobs, logprob] : logprobs);
  }
  return { teacher_topk_ids, teacher_topk_logprobs };
}
