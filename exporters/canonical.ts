/** Canonical JSONL: one trajectory a line, the whole record as `schema/trajectory.ts` says it. */
import { defineExporter, noOptions } from "./exporter.ts";

export const canonical = defineExporter({
  name: "canonical",
  title: "one trajectory a line: calls, messages, token tree, traces, fidelity",
  objective: "any",
  extension: "jsonl",
  selects: false,
  docs: {
    alignment: "tree",
    rows: "One line for each trajectory, whatever it holds; nothing is padded, selected or refused.",
    loader: "alidade_read.py",
    checked: "its own reader",
  },
  options: noOptions,
  async *write(source, _options, report) {
    for await (const trajectory of source.trajectories()) {
      report.rows++;
      yield JSON.stringify(trajectory);
    }
  },
});
