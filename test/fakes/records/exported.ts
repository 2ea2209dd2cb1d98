/** What an exporter writes of some trajectories, in memory. */
import { Writable } from "node:stream";
import type { Media } from "../../../base/media/media.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { exportTrajectories } from "../../../exporters/export-trajectories.ts";
import type { Exporter, ExportOptions, ExportReport } from "../../../exporters/exporter.ts";

export type Exported = { rows: Record<string, unknown>[]; report: ExportReport; bytes: Buffer };

/** `rows` is empty where the format is not made of lines. */
export async function exported(
  exporter: Exporter,
  trajectories: Iterable<Trajectory> | AsyncIterable<Trajectory>,
  options: Partial<ExportOptions> & { media?: Pick<Media, "read"> } = {},
): Promise<Exported> {
  const chunks: Buffer[] = [];
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  const report = await exportTrajectories(exporter, trajectories, output, options);
  const bytes = Buffer.concat(chunks);
  const lines = exporter.extension === "jsonl" ? bytes.toString("utf8").split("\n").filter(Boolean) : [];
  return { report, bytes, rows: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}
