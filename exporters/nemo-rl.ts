/** NeMo RL: one `DatumSpec` a line, its message log in token ids; `alidade_nemo_rl.py` makes the tensors. */
import { z } from "zod";
import type { FlatRow } from "../reconstruct/index.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { defineExporter } from "./exporter.ts";
import { nemoTurns } from "./nemo-turns.ts";
import { groupSize, type Place, positionalGroups } from "./positional.ts";

export const nemoRl = defineExporter({
  name: "nemo-rl",
  title: "NeMo RL message logs: user and assistant token_ids, generation_logprobs, loss_multiplier",
  objective: "rl",
  extension: "jsonl",
  wholeGroups: true,
  docs: {
    alignment: "D",
    rows: "Exactly `--group-size` rows a group, one a rollout: of several its row with the most trained tokens. A rollout that trains nothing is a row with `loss_multiplier` 0; a group with a rollout that was not measured is left out.",
    loader: "alidade_nemo_rl.py",
    checked: "its documented fields, not its code",
  },
  options: z.strictObject({ group_size: groupSize }),
  async *write(source, options, report) {
    let idx = 0;
    const positional = {
      groupSize: options.own.group_size,
      missing: "drop",
      toLine: toDatum,
    } as const;
    for await (const lines of positionalGroups(source, options, report, positional))
      for (const line of lines) yield JSON.stringify({ ...line, idx: idx++ });
  },
});

function toDatum(row: FlatRow, trajectory: Trajectory, { group_index, reward }: Place): Record<string, unknown> {
  const message_log = nemoTurns(row).flatMap(({ new_ids, token_ids, logprobs }) => [
    { role: "user", content: "", token_ids: new_ids },
    { role: "assistant", content: "", token_ids, generation_logprobs: logprobs },
  ]);
  return {
    message_log,
    length: message_log.reduce((length, message) => length + message.token_ids.length, 0),
    loss_multiplier: row.dummy ? 0 : 1,
    total_reward: reward,
    task_name: trajectory.task.data_source,
    extra_env_info: { trajectory_id: row.trajectory_id, rollout_id: row.rollout_id, group_id: row.group_id, group_index, agent: row.agent },
  };
}
