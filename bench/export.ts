/**
 * Does an export hold its memory flat, however many trajectories there are?
 *
 *     node bench/export.ts                                  every format, 800 trajectories of 30 k tokens each
 *     node bench/export.ts --trajectories 10000 --format flat
 *     node bench/export.ts --quick                          a smoke test: the numbers mean nothing
 *
 * Each format runs in a process of its own and reads copies of one trajectory, parsed and checked as a run's file is. At
 * each eighth of the reading and of the writing the garbage is collected and what is left is noted.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { exporters } from "../exporters/registry.ts";
import { Child } from "./child.ts";
import type { Answer, Question } from "./export/child.ts";
import { surroundings } from "./measure.ts";

const { values: options } = parseArgs({
  options: {
    trajectories: { type: "string" },
    format: { type: "string", multiple: true },
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
  },
});
const trajectories = Number(options.trajectories ?? (options.quick ? 64 : 800));
const shape = options.quick ? { calls: 4, tokens: 400 } : { calls: 30, tokens: 30_000 };
const formats = options.format ?? exporters.map((one) => one.name);

/**
 * What each thousand of trajectories may leave behind in MB: half a kilobyte for each, to find it by its group, and as
 * much for the measurement. One trajectory is about 5 MB in memory.
 */
const allowedGrowth = 1;

type Row = Answer & { format: string; growth: number };

const before = surroundings();
const rows: Row[] = [];
for (const format of formats) rows.push(await measure(format));
const report = { ...before, loadAfter: surroundings().load, trajectories, ...shape, rows };
console.log(options.json ? JSON.stringify(report, null, 2) : render());
const growing = rows.filter((row) => row.growth > allowedGrowth);
if (growing.length > 0 && !options.quick) {
  console.error(`memory grows with the number of trajectories: ${growing.map((row) => row.format).join(", ")}`);
  process.exitCode = 1;
}

async function measure(format: string): Promise<Row> {
  await using child = new Child(fileURLToPath(new URL("./export/child.ts", import.meta.url)));
  const answer = await child.ask<Answer>("export", { format, trajectories, ...shape } satisfies Question);
  const row = { ...answer, format, growth: Math.max(growthOf(answer.reading), growthOf(answer.writing)) };
  // A long run that is stopped has told what it knew.
  console.error(`${format}: ${answer.seconds.toFixed(0)} s, ${row.growth.toFixed(1)} MB more for each 1000 trajectories`);
  return row;
}

/**
 * MB for a thousand trajectories, from the first half to the second. Of each half the least counts: what a look finds
 * besides is the group or the row group that is being written.
 */
function growthOf(eighths: number[]): number {
  if (eighths.length < 4) return 0;
  const middle = Math.floor(eighths.length / 2);
  const growth = Math.min(...eighths.slice(middle)) - Math.min(...eighths.slice(0, middle));
  return growth / 2 ** 20 / ((middle / eighths.length) * (trajectories / 1000));
}

function render(): string {
  const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
  const cells = rows.map((row) => [
    row.format,
    row.rows,
    mb(row.bytes),
    row.seconds.toFixed(0),
    mb(Math.max(...row.reading, ...row.writing)),
    row.growth.toFixed(1),
    mb(row.peakRss),
  ]);
  const head = ["format", "rows", "MB written", "s", "most MB retained", "MB more for each 1000 trajectories", "peak RSS MB"];
  const table = [head, head.map(() => "---"), ...cells].map((row) => `| ${row.join(" | ")} |`);
  const { machine, node, commit, load, loadAfter } = report;
  return [
    `${machine}; Node ${node}; ${commit}; load ${load} before, ${loadAfter} after`,
    `${trajectories} trajectories of ${shape.tokens} tokens in ${shape.calls} calls, groups of 8`,
    "",
    ...table,
  ].join("\n");
}
