/** Canonical JSONL: one trajectory a line, the whole record as `base/schema/trajectory.ts` says it. */
import { AlidadeError } from "../base/errors.ts";
import { judgedNodes } from "../reconstruct/index.ts";
import { defineExporter, noOptions } from "./exporter.ts";

export const canonical = defineExporter({
  name: "canonical",
  title: "one trajectory a line: calls, messages, token tree, traces, fidelity",
  objective: "any",
  extension: "jsonl",
  selects: false,
  everyAttempt: true,
  namesPictures: true,
  docs: {
    alignment: "tree",
    rows: "One line for each trajectory, whatever it holds, every attempt of a rollout among them; nothing is padded, selected or refused.",
    teacher: "`teacher` of trajectory and nodes",
    loader: "alidade.rows",
    proof: { how: "ours", by: "the reader in the Python package" },
  },
  options: noOptions,
  async *write(source, { cutOff, unmeasured }, report) {
    const rule = Object.keys(cutOff).length > 0 ? "cut_off" : unmeasured === "zero" ? "unmeasured" : null;
    if (rule !== null)
      throw new AlidadeError(
        "config_invalid",
        `the export format canonical says what was recorded: leave out --${rule.replace("_", "-")}`,
        { param: rule },
      );
    for await (const trajectory of source.trajectories()) {
      report.rows++;
      // Records of older releases say another `trainable`.
      yield JSON.stringify({ ...trajectory, nodes: judgedNodes(trajectory) });
    }
  },
});
