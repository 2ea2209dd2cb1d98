/**
 * What would it cost to write sampled tokens to the log as they come, so that a kill of the proxy loses fewer?
 *
 *     node bench/tokens-in-flight.ts
 *
 * CPU of the lines alone (JSON and one write each) for a call of 500 tokens, beside what such a call costs now
 * (proxy-overhead.ts, live-streams.ts). Lowest and median of many rounds: a busy machine only adds.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Appender } from "../proxy/store/index.ts";
import { markdownTable, surroundings } from "./measure.ts";

const tokens = 500;
const rounds = 400;
/** What a call costs, as it was measured on a quiet machine (README.md): payload b buffered, and 500 tokens live. */
const kinds = [
  { name: "buffered, 64 tokens a line", tokensALine: 64, callUs: 2_120 },
  { name: "live, a token a line", tokensALine: 1, callUs: tokens * 67.8 },
];

const before = surroundings();
const folder = await mkdtemp(join(tmpdir(), "alidade-in-flight-"));
const rows: string[][] = [];
{
  await using log = await Appender.open(join(folder, "log.jsonl"));
  for (const { name, tokensALine, callUs } of kinds) {
    const us = await cpuUs(log, tokensALine);
    const ratio = (value: number): string => `${((100 * value) / callUs).toFixed(1)} %`;
    rows.push([name, us.lowest.toFixed(0), us.median.toFixed(0), ratio(us.lowest), ratio(us.median)]);
  }
}
await rm(folder, { recursive: true });
const { machine, node, commit, load } = before;
console.log(`${machine}; Node ${node}; commit ${commit}; load ${load.toFixed(1)}\n`);
console.log(markdownTable(["lines", "CPU µs a call, lowest", "median", "of the call, lowest", "median"], rows).join("\n"));

async function cpuUs(log: Appender, tokensALine: number): Promise<{ lowest: number; median: number }> {
  const lines = Array.from({ length: Math.ceil(tokens / tokensALine) }, () => lineOf(tokensALine));
  // The clock of CPU time ticks in steps larger than a call.
  const calls = 10;
  const measured: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage();
    for (let call = 0; call < calls; call++) for (const line of lines) await log.append(`${JSON.stringify(line)}\n`);
    const { user, system } = process.cpuUsage(start);
    measured.push((user + system) / calls);
  }
  measured.sort((a, b) => a - b);
  return { lowest: measured[0]!, median: measured[rounds / 2]! };
}

function lineOf(length: number): unknown {
  return {
    type: "sampled",
    time: Date.now(),
    call_id: "call00000000000000000000",
    token_ids: Array.from({ length }, (_, at) => 10_000 + 37 * at),
    logprobs: Array.from({ length }, (_, at) => -0.123456789 * (at + 1)),
  };
}
