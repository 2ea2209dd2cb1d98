/**
 * OpenEnv: one `TrainingTrace` a line, beside the reward, which OpenEnv keeps apart from it. A turn is a call; its mask
 * covers prompt and completion, so a call that is trained in part can be said.
 */
import { type FlatRow, type RowTurn, standingOf, turnsOf } from "../reconstruct/index.ts";
import { defineExporter, noOptions } from "./exporter.ts";
import { rowsOf } from "./rows/rows.ts";
import { leaveOutRollout } from "./shapes/left-out.ts";

export const openenv = defineExporter({
  name: "openenv",
  title: "OpenEnv TrainingTrace: one turn a call with its prompt, completion, logprobs and mask",
  objective: "rl",
  extension: "jsonl",
  docs: {
    alignment: "D",
    rows: "One trace a rollout, with the calls that train something, branch after branch; a turn's prompt is what the engine saw. Nothing is padded. A reward that was not measured is null. TRL builds rows from the trace: set its fork threshold to 0, or it drops the end of a turn that was re-rendered.",
    pictures: "a turn of a `TrainingTrace` has ids, logprobs and a mask. TRL builds rows from it, and reads no pictures there.",
    loader: "alidade.loaders.openenv",
    proof: { how: "trainer", by: "openenv 0.10.0" },
  },
  options: noOptions,
  async *write(source, options, report) {
    for await (const trajectory of source.trajectories()) {
      const turns = toTurns(rowsOf(trajectory, options, report));
      if (turns.length === 0) {
        leaveOutRollout(report, "nothing_trained");
        continue;
      }
      report.rows++;
      yield JSON.stringify({
        rollout_id: trajectory.rollout_id,
        group_id: trajectory.group.id,
        sample_index: trajectory.group.sample_index,
        trajectory_id: trajectory.trajectory_id,
        reward: standingOf(trajectory, options).reward,
        training_trace: { schema_version: 1, turns },
      });
    }
  },
});

/** A call that two rows train in parts has a turn in each, for a trace may name a node once. */
function toTurns(rows: Iterable<FlatRow>): Record<string, unknown>[] {
  const seen = new Map<string, number>();
  const turns: Record<string, unknown>[] = [];
  for (const turn of [...rows].flatMap(turnsOf)) {
    if (!turn.mask.includes(1)) continue;
    const count = (seen.get(turn.call_id) ?? 0) + 1;
    seen.set(turn.call_id, count);
    turns.push(toTurn(turn, count === 1 ? turn.call_id : `${turn.call_id}.${count}`));
  }
  return turns;
}

function toTurn(turn: RowTurn, node_id: string): Record<string, unknown> {
  const { agent, policy_version, policy_step } = turn;
  return {
    node_id,
    prompt_token_ids: turn.prompt_ids,
    completion_token_ids: turn.token_ids,
    per_token_logps: turn.logprobs,
    loss_mask: [...turn.prompt_ids.map(() => 0), ...turn.mask],
    metadata: { call_id: turn.call_id, agent, policy_version, policy_step },
  };
}
