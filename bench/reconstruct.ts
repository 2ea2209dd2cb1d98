/**
 * What does it cost to make a trajectory of a session, against reading the same file?
 *
 *     node bench/reconstruct.ts                  the table, about two minutes
 *     node bench/reconstruct.ts --json           the same as JSON
 *     node bench/reconstruct.ts --quick          a smoke test: the numbers mean nothing
 *
 * "Reading" is the file from disk (in the page cache) and `JSON.parse` of each line, without any check. The steps are
 * interleaved in every round, and ratios are taken within a round.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { LogEntry } from "../base/schema/session-log.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import { reconstruct, selectRows } from "../reconstruct/index.ts";
import { type Spread, spread, surroundings } from "./measure.ts";
import { type SessionShape, sessionLog } from "./reconstruct/session.ts";

const { values: options } = parseArgs({
  options: { json: { type: "boolean", default: false }, quick: { type: "boolean", default: false } },
});
const rounds = options.quick ? 1 : 21;
/** How many times a session is made in one go: what a collector of garbage costs is in it. */
const many = options.quick ? 2 : 1000;

type Step = "read" | "check" | "reconstruct" | "rows";
type Row = SessionShape & { bytes: number; sessions: number; read_ms: number; ratios: Record<Exclude<Step, "read">, Spread | null> };

const folder = await mkdtemp(join(tmpdir(), "alidade-bench-"));
try {
  const rows: Row[] = [];
  const before = surroundings();
  for (const kind of ["append", "drift"] as const)
    for (const calls of options.quick ? [6, 12, 24] : [60, 120, 240])
      rows.push(await measure({ calls, tokens: calls * 1000, kind }, 1, rounds));
  rows.push(
    await measure(options.quick ? { calls: 6, tokens: 6000, kind: "append" } : { calls: 60, tokens: 60_000, kind: "append" }, many, 1),
  );
  const report = { ...before, loadAfter: surroundings().load, rounds, rows };
  console.log(options.json ? JSON.stringify(report, null, 2) : render(report));
} finally {
  await rm(folder, { recursive: true });
}

async function measure(shape: SessionShape, sessions: number, times: number): Promise<Row> {
  const path = join(folder, `${shape.kind}-${shape.calls}.jsonl`);
  const text = sessionLog(shape)
    .map((entry) => JSON.stringify(entry))
    .join("\n");
  await writeFile(path, text);
  const read: number[] = [];
  const ratios: Record<Exclude<Step, "read">, number[]> = { check: [], reconstruct: [], rows: [] };
  // The first round warms the compiler up and is not counted.
  for (let round = -1; round < times; round++) {
    const took = await playOnce(path, round < 0 ? 1 : sessions);
    if (round < 0) continue;
    read.push(took.read);
    for (const step of ["check", "reconstruct", "rows"] as const) ratios[step].push(took[step] / took.read);
  }
  return {
    ...shape,
    bytes: text.length,
    sessions,
    read_ms: (spread(read)?.median ?? 0) / sessions,
    ratios: { check: spread(ratios.check), reconstruct: spread(ratios.reconstruct), rows: spread(ratios.rows) },
  };
}

async function playOnce(path: string, sessions: number): Promise<Record<Step, number>> {
  const took: Record<Step, number> = { read: 0, check: 0, reconstruct: 0, rows: 0 };
  for (let session = 0; session < sessions; session++) {
    const values = await timed(took, "read", async () =>
      (await readFile(path, "utf8")).split("\n").map((line): unknown => JSON.parse(line)),
    );
    const entries = await timed(took, "check", () => values.map((value) => LogEntry.parse(value)));
    const trajectory: Trajectory = await timed(took, "reconstruct", () => reconstruct(entries));
    await timed(took, "rows", () => {
      let tokens = 0;
      for (const row of selectRows(trajectory).rows) tokens += row.token_ids.length;
      return tokens;
    });
  }
  return took;
}

async function timed<T>(took: Record<Step, number>, step: Step, run: () => T | Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await run();
  took[step] += performance.now() - start;
  return result;
}

function render({
  machine,
  node,
  commit,
  load,
  loadAfter,
  rows,
}: ReturnType<typeof surroundings> & { loadAfter: number; rows: Row[] }): string {
  const cell = (value: Spread | null) =>
    value === null ? "?" : `${value.median.toFixed(2)} (${value.min.toFixed(2)} to ${value.max.toFixed(2)})`;
  return [
    `${machine}; Node ${node}; commit ${commit}; load ${load.toFixed(1)} before, ${loadAfter.toFixed(1)} after`,
    "",
    "| session | calls | sessions | MB | read, ms each | check × | reconstruct × | strict rows × |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ...rows.map(
      ({ kind, calls, sessions, bytes, read_ms, ratios }) =>
        `| ${kind} | ${calls} | ${sessions} | ${(bytes / 1e6).toFixed(1)} | ${read_ms.toFixed(1)} | ${cell(ratios.check)} | ${cell(ratios.reconstruct)} | ${cell(ratios.rows)} |`,
    ),
  ].join("\n");
}
