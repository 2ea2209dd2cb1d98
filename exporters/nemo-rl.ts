/** NeMo RL: one `DatumSpec` a line, its message log in token ids; `alidade.loaders.nemo_rl` makes the tensors. */
import { z } from "zod";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, teacherLogprobs } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { mediaWithin } from "./rows/media.ts";
import { routingUpTo } from "./rows/routing.ts";
import { firstPromptOf } from "./shapes/common-prompt.ts";
import { nemoTurns } from "./shapes/nemo-turns.ts";
import { groupSize, positionalGroups, type SamplePlace } from "./shapes/positional.ts";

export const nemoRl = defineExporter({
  name: "nemo-rl",
  title: "NeMo RL message logs: user and assistant token_ids, generation_logprobs, loss_multiplier",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "D",
    rows: "Exactly `--group-size` rows a group, one a rollout: where a rollout has several rows, the one with the most trained tokens. A rollout that trains nothing is a row with `loss_multiplier` 0; a group with a rollout that was not measured is left out. NeMo RL compares rollouts whose first `length` tokens are equal, so `length` is the first prompt's, and a group whose rollouts begin with different prompts is left out as `prompts_differ`. A rollout with several rows gives the row that begins as the other rollouts do. A message has the pictures of its tokens (`media`). The loader turns them into packed tensors.",
    teacher: "`teacher_reference_logprobs`",
    experts: "`routed_experts` of each message, int16; a token without an entry has -1, and NeMo RL routes it itself",
    loader: "alidade.loaders.nemo_rl",
    proof: { how: "by_hand", by: "its source of August 2026 (advantages, masks)" },
  },
  options: z.strictObject({ group_size: groupSize }),
  async *write(source, options, report) {
    let idx = 0;
    const positional = {
      groupSize: options.own.group_size,
      missing: "drop",
      promptOf: firstPromptOf,
      toLine: toDatum,
    } as const;
    for await (const lines of positionalGroups(source, options, report, positional))
      for (const line of lines) yield JSON.stringify({ ...line, idx: idx++ });
  },
});

function toDatum(row: FlatRow, trajectory: Trajectory, { group_index, reward }: SamplePlace): Record<string, unknown> {
  const prompt = firstPromptOf(row);
  let end = 0;
  // Write untrained turns of the policy as user messages: assistant messages would be trained.
  const toUser = (token_ids: number[]) => {
    end += token_ids.length;
    return { role: "user", content: "", token_ids, ...mediaWithin(row, end - token_ids.length, end) };
  };
  const message_log = nemoTurns(row).flatMap(({ new_ids, token_ids, logprobs }, at) => {
    const input = (at === 0 ? [prompt, new_ids.slice(prompt.length)] : [new_ids]).filter((ids) => ids.length > 0).map(toUser);
    end += token_ids.length;
    return [...input, { role: "assistant", content: "", token_ids, generation_logprobs: logprobs }];
  });
  const teacher = teacherLogprobs(row);
  return {
    message_log,
    // The message log ends with the last trained token, or with the made one of a dummy.
    ...(teacher && { teacher_reference_logprobs: Array.from({ length: end }, (_, at) => (at < teacher.length ? teacher[at] : 0)) }),
    ...routingUpTo(row, end),
    length: prompt.length,
    loss_multiplier: row.dummy ? 0 : 1,
    total_reward: reward,
    task_name: trajectory.task.data_source,
    extra_env_info: { trajectory_id: row.trajectory_id, rollout_id: row.rollout_id, group_id: row.group_id, group_index, agent: row.agent },
  };
}
