/** A run as a table for people: one line a rollout. */
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { table } from "../../../view/text/index.ts";

export function rolloutTable(records: RolloutRecord[]): string {
  return table(
    ["rollout", "reward", "turns", "sampled", "traces", "trainable", "seconds", "ended"],
    records.map((record) => {
      const { summary } = record;
      const share =
        summary && summary.sampled_tokens > 0 ? `${Math.round((100 * summary.trainable_tokens) / summary.sampled_tokens)} %` : null;
      const { run, teach, done } = record.times;
      const seconds = done && run ? Number((((teach ?? done) - run) / 1000).toFixed(1)) : null;
      return [
        `${record.task_id}/${record.sample_index}${record.attempt > 1 ? ` (attempt ${record.attempt})` : ""}`,
        record.verdict?.reward ?? null,
        summary?.turns ?? null,
        summary?.sampled_tokens ?? null,
        summary?.traces ?? null,
        share,
        seconds,
        record.stop_reason ?? record.state,
      ];
    }),
  );
}
