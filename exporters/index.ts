/** The list of exporters: adding one is a file and a line here. */
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AlidadeError } from "../errors.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { canonical } from "./canonical.ts";
import { chat } from "./chat.ts";
import type { Exporter, ExportOptions, ExportReport } from "./exporter.ts";
import { flat } from "./flat.ts";

export type { Exporter, ExportOptions, ExportReport } from "./exporter.ts";

export const exporters = [canonical, flat, chat] as const satisfies readonly Exporter[];

/** The exporter of that name; throws `plugin_unknown` with the names that there are. */
export function exporterNamed(name: string): Exporter {
  const exporter = exporters.find((each) => each.name === name);
  if (exporter) return exporter;
  const names = exporters.map((each) => each.name).join(", ");
  throw new AlidadeError("plugin_unknown", `There is no export format "${name}"; there are: ${names}.`, { param: "format" });
}

/**
 * Writes trajectories as they come, one line a row, and ends the output (standard output stays open). Memory holds one
 * trajectory at a time, and a slow output slows the reading. Returns what was written and what was left out, by
 * reason. Where it throws (a broken output, an aborted signal), the output is destroyed and its file is incomplete.
 *
 *     const report = await exportTrajectories(flat, readTrajectories(file), createWriteStream("rows.jsonl"));
 */
export async function exportTrajectories(
  exporter: Exporter,
  trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>,
  output: Writable,
  options: Partial<ExportOptions> & { signal?: AbortSignal } = {},
): Promise<ExportReport> {
  const report: ExportReport = { trajectories: 0, rows: 0, left_out: {} };
  const settings = { maxTokens: options.maxTokens ?? null, allowGrammar: options.allowGrammar ?? false };
  const lines = withNewlines(exporter.lines(asAsync(trajectories), settings, report));
  await pipeline(lines, output, { end: output !== process.stdout, ...(options.signal && { signal: options.signal }) });
  return report;
}

async function* asAsync(trajectories: AsyncIterable<Trajectory> | Iterable<Trajectory>): AsyncIterable<Trajectory> {
  yield* trajectories;
}

async function* withNewlines(lines: AsyncIterable<string>): AsyncIterable<string> {
  for await (const line of lines) yield `${line}\n`;
}
