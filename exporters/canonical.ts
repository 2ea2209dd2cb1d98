/** Canonical JSONL: one trajectory a line, the whole record as `schema/trajectory.ts` says it. */
import type { Exporter } from "./exporter.ts";

export const canonical: Exporter = {
  name: "canonical",
  title: "one trajectory a line: calls, messages, token tree, traces, fidelity",
  objective: "any",
  async *lines(trajectories, _options, report) {
    for await (const trajectory of trajectories) {
      report.trajectories++;
      report.rows++;
      yield JSON.stringify(trajectory);
    }
  },
};
