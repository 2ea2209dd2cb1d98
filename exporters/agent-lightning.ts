/**
 * agent-lightning: one `CompletedRollout` a line, with one triplet for each turn. Its adapter either joins triplets that
 * continue each other, or makes a row of each one. Both give every trained token once.
 */
import { defineExporter, noOptions } from "./exporter.ts";
import { mediaWithin } from "./rows/media.ts";
import { numberSessions } from "./rows/numbering.ts";
import { trainedRuns } from "./rows/trained-runs.ts";
import { leaveOutRollout } from "./shapes/left-out.ts";
import { type ScoredRow, scoredRows } from "./shapes/scored-rows.ts";

export const agentLightning = defineExporter({
  name: "agent-lightning",
  title: "agent-lightning CompletedRollout: triplets of prompt, response and logprobs, final_reward",
  objective: "rl",
  extension: "jsonl",
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "D",
    rows: "One line for each rollout. The trainer's adapter drops rows without a trained token, and their reward with them. So a rollout without trained tokens is left out. The adapter cuts and marks anything longer than its own limits. A triplet has the pictures of its prompt (`media`). The loader makes `image_urls` of them, which the adapter takes only at its level `transition`.",
    loader: "alidade.loaders.agent_lightning",
    proof: { how: "trainer", by: "agentlightning 1.0.2" },
  },
  options: noOptions,
  async *write(source, options, report) {
    const sessionOf = numberSessions();
    for await (const trajectory of source.trajectories()) {
      const rows = [...scoredRows(trajectory, options, report)];
      const triplets = rows.flatMap(toTriplets);
      if (rows.length > 0 && triplets.length === 0) {
        report.dummy_rows -= rows.length;
        leaveOutRollout(report, "nothing_trained");
      }
      if (triplets.length === 0) continue;
      const data_id = trajectory.group.id ?? trajectory.trajectory_id;
      report.rows++;
      yield JSON.stringify({
        rollout_id: trajectory.rollout_id ?? trajectory.trajectory_id,
        data_id,
        step: 0,
        sample_idx_in_step: sessionOf(data_id, trajectory),
        enqueue_time: Math.min(...trajectory.calls.map((call) => call.times.begun)) / 1000,
        final_reward: rows[0]?.reward,
        triplets,
      });
    }
  },
});

function toTriplets(row: ScoredRow): Record<string, unknown>[] {
  return trainedRuns(row).map(({ prompt_ids, token_ids, logprobs, call_id, policy_version }) => ({
    prompt: { token_ids: prompt_ids },
    response: { token_ids, log_probs: logprobs },
    ...mediaWithin(row, 0, prompt_ids.length),
    reward: null,
    metadata: { call_id, server: { version: policy_version } },
  }));
}
