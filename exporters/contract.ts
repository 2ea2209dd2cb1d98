/** What holds for every exporter, over trajectories of a run or over none: `alidade plugin check` runs it. */
import assert from "node:assert/strict";
import { Writable } from "node:stream";
import type { ContractCheck } from "../base/host/plug-ins.ts";
import { readJson } from "../base/schema/read-json.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { exportTrajectories } from "./export-trajectories.ts";
import type { Exporter, ExportReport } from "./exporter.ts";

export type ExporterContext = { trajectories: readonly Trajectory[] };

export const exporterContract: readonly ContractCheck<Exporter, ExporterContext>[] = [
  {
    says: "of nothing it writes no row",
    async check(exporter) {
      assert.equal((await written(exporter, [])).report.rows, 0);
    },
  },
  {
    says: "it counts the rows that it writes, each of them a line of JSON",
    async check(exporter, { trajectories }) {
      const { bytes, report } = await written(exporter, trajectories);
      assert.equal(report.trajectories, trajectories.length);
      if (exporter.extension !== "jsonl") return;
      const lines = bytes.toString("utf8").split("\n").slice(0, -1);
      for (const line of lines) readJson(line);
      assert.equal(report.rows, lines.length, "report.rows is the number of lines");
    },
  },
  {
    says: "of the same trajectories it writes the same bytes",
    async check(exporter, { trajectories }) {
      const [first, second] = [await written(exporter, trajectories), await written(exporter, trajectories)];
      assert.ok(first.bytes.equals(second.bytes));
    },
  },
];

async function written(exporter: Exporter, trajectories: readonly Trajectory[]): Promise<{ bytes: Buffer; report: ExportReport }> {
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  const report = await exportTrajectories(exporter, [...trajectories], sink);
  return { bytes: Buffer.concat(chunks), report };
}
