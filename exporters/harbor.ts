/**
 * Harbor: what a trial's result says of the agent and the verifier, one rollout a line; the tokens are in
 * `rollout_details`, one for each branch, the main agent's first.
 */

import type { Trajectory } from "../base/schema/trajectory.ts";
import { type FlatRow, underRules } from "../reconstruct/index.ts";
import { defineExporter, noOptions } from "./exporter.ts";
import { rowsOf } from "./rows/rows.ts";
import { trainedRuns } from "./rows/trained-runs.ts";
import { leaveOutRollout } from "./shapes/left-out.ts";

export const harbor = defineExporter({
  name: "harbor",
  title: "Harbor agent_result with rollout_details (prompt and completion ids, logprobs turn by turn), verifier_result",
  objective: "rl",
  extension: "jsonl",
  docs: {
    alignment: "D",
    rows: "One line a rollout with a detail for each of its branches, the main agent's first; readers that want one detail must refuse the others. Each turn is in one detail only, and all its sampled tokens are trained. A reward that was not measured is null.",
    pictures:
      "a `RolloutDetail` has ids and logprobs for each turn, and no field for pictures. `atif` has the pictures themselves, in its messages.",
    loader: null,
    proof: { how: "trainer", by: "harbor 0.25.0" },
  },
  options: noOptions,
  async *write(source, options, report) {
    for await (const trajectory of source.trajectories()) {
      const rows = [...rowsOf(trajectory, options, report)].filter((row) => row.trained_tokens > 0);
      if (rows.length === 0) {
        leaveOutRollout(report, "nothing_trained");
        continue;
      }
      report.rows++;
      yield JSON.stringify(toResult(underRules(trajectory, options), rows));
    }
  },
});

function toResult(trajectory: Trajectory, rows: FlatRow[]): Record<string, unknown> {
  const { reward, task, group, rollout_id, trajectory_id, lead_agents } = trajectory;
  const leadsFirst = rows.toSorted((a, b) => Number(lead_agents.includes(b.agent)) - Number(lead_agents.includes(a.agent)));
  return {
    agent_result: {
      n_input_tokens: sumOf(trajectory, "prompt_tokens"),
      n_cache_tokens: sumOf(trajectory, "cached_tokens"),
      n_output_tokens: sumOf(trajectory, "sampled_tokens"),
      rollout_details: leadsFirst.map(toDetail),
      metadata: { trajectory_id, rollout_id, task_id: task.id, group_id: group.id, sample_index: group.sample_index },
    },
    verifier_result: reward === null ? null : { rewards: { reward } },
  };
}

function toDetail(row: FlatRow): Record<string, unknown> {
  const runs = trainedRuns(row);
  return {
    prompt_token_ids: runs.map((run) => run.prompt_ids),
    completion_token_ids: runs.map((run) => run.token_ids),
    logprobs: runs.map((run) => run.logprobs),
    extra: { call_id: runs.map((run) => run.call_id), policy_version: runs.map((run) => run.policy_version) },
  };
}

/** Over all calls that were answered; null where the engine did not say it of one. */
function sumOf({ calls }: Trajectory, name: "prompt_tokens" | "cached_tokens" | "sampled_tokens"): number | null {
  const counts = calls.filter((call) => call.output !== null).map((call) => call.usage?.[name] ?? null);
  const known = counts.filter((count) => count !== null);
  return known.length === counts.length ? known.reduce((sum, count) => sum + count, 0) : null;
}
