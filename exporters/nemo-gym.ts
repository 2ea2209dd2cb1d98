/**
 * NeMo Gym: one result row a line, with the rollout as the items of one response. As Gym's own server does, the last item
 * that a call sampled carries the call's tokens. NeMo RL reads everything between as input.
 */
import { z } from "zod";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";
import { outputMessage, type ResponseItem, responseItems, responseTool, withItemIds } from "../base/wire/response-items.ts";
import type { FlatRow } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { rolloutComponents } from "./rows/rollout-components.ts";
import { callsOfRow, inputOf, outputOf, toolsOf } from "./rows/row-calls.ts";
import { firstPromptOf } from "./shapes/common-prompt.ts";
import { type NemoTurn, nemoTurns } from "./shapes/nemo-turns.ts";
import { groupSize, positionalGroups, type SamplePlace } from "./shapes/positional.ts";

export const nemoGym = defineExporter({
  name: "nemo-gym",
  title: "NeMo Gym result rows: response items with prompt_token_ids, generation_token_ids, generation_log_probs",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  docs: {
    alignment: "D",
    rows: "Exactly `--group-size` rows a group, one a rollout. If a rollout has several rows, only the one with the most trained tokens is written, because NeMo RL refuses a rollout that is not one chain. A rollout that trains nothing is a row with `mask_sample`, also in `instance_config`, where NeMo RL reads it. A group with a rollout that was not measured is left out. NeMo RL compares rollouts with an equal first prompt. So a group is left out as `prompts_differ` if its rollouts begin with different prompts. It is left out as `first_turn_untrained` if the first turn of a rollout is not trained.",
    pictures:
      "NeMo RL makes pixels of pictures in Gym's items only with a processor of Nemotron Nano VL. Without one, it trains their pads as text. `nemo-rl` has pictures.",
    loader: null,
    proof: { how: "trainer", by: "nemo-gym 0.4.0; NeMo RL's side by its documented fields" },
  },
  options: z.strictObject({ group_size: groupSize }),
  async *write(source, options, report) {
    const positional = {
      groupSize: options.own.group_size,
      missing: "drop",
      promptOf: firstPromptOf,
      // Gym's result has no length of its first prompt: NeMo RL takes all that stands before the first trained token.
      unsayable: (row: FlatRow) =>
        (nemoTurns(row)[0]?.prompt_ids.length ?? 0) === firstPromptOf(row).length ? null : "first_turn_untrained",
      format: { wholeTurns: true },
      toLine,
    } as const;
    for await (const lines of positionalGroups(source, options, report, positional)) for (const line of lines) yield JSON.stringify(line);
  },
});

function toLine(row: FlatRow, trajectory: Trajectory, { group_index, position, reward }: SamplePlace): ResponseItem {
  const calls = callsOfRow(row, trajectory);
  const first = calls[0] ?? trajectory.calls[0];
  const input = first === undefined ? [] : inputOf(first, trajectory);
  const tools = toolsOf(first, trajectory).map(responseTool);
  return {
    responses_create_params: { input: input.flatMap(responseItems), tools, parallel_tool_calls: true },
    response: {
      id: row.trajectory_id,
      created_at: (first?.times.begun ?? 0) / 1000,
      model: first?.engine_model ?? "unknown",
      object: "response",
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools,
      output: row.dummy ? [placeHolder(nemoTurns(row)[0])] : outputItems(row, calls, trajectory),
    },
    reward,
    reward_components: measured(rolloutComponents(trajectory)),
    // NeMo RL reads the mask here.
    instance_config: { mask_sample: row.dummy },
    mask_sample: row.dummy,
    _ng_task_index: group_index,
    _ng_rollout_index: position,
    alidade: { trajectory_id: row.trajectory_id, rollout_id: row.rollout_id, group_id: row.group_id, agent: row.agent },
  };
}

/** Gym's components are numbers: one that could not be measured stays away. */
function measured(values: Record<string, number | null>): Record<string, number | null> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}

function outputItems(row: FlatRow, calls: CallRecord[], trajectory: Trajectory): ResponseItem[] {
  const turns = new Map(nemoTurns(row).map((turn) => [turn.call_id, turn]));
  const items = calls.flatMap((call, index) => {
    const before = calls[index - 1];
    const context = before === undefined ? [] : inputOf(call, trajectory).slice(before.input.length + 1);
    const output = outputOf(call, trajectory).flatMap(responseItems);
    return [...context.flatMap(responseItems), ...withTokens(output.length > 0 ? output : [outputMessage("")], turns.get(call.call_id))];
  });
  return withItemIds(items);
}

/** The last item of the turn, as Gym's own converter does it. */
function withTokens(items: ResponseItem[], turn: NemoTurn | undefined): ResponseItem[] {
  if (turn === undefined) return items;
  return items.map((item, at) => (at === items.length - 1 ? { ...item, ...tokensOf(turn) } : item));
}

function tokensOf({ prompt_ids, token_ids, logprobs }: NemoTurn): ResponseItem {
  return { prompt_token_ids: prompt_ids, generation_token_ids: token_ids, generation_log_probs: logprobs };
}

function placeHolder(turn: NemoTurn | undefined): ResponseItem {
  return { ...outputMessage(""), ...(turn === undefined ? {} : tokensOf(turn)) };
}
