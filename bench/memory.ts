/**
 * Does the memory of the process stay flat?
 *
 *     node bench/memory.ts [--calls 2000]
 *
 * Agentic calls (payload b of proxy-overhead) in growing sessions of 20 calls, 16 at a time, each sealed when it is
 * over. After every 200 calls: what is in use after a garbage collection, and the resident size.
 */
import { parseArgs } from "node:util";
import { markdownTable, surroundings } from "./measure.ts";
import { payloadOf } from "./proxy-overhead/payloads.ts";
import { takeRecorded } from "./proxy-overhead/recorded.ts";
import { startAlone } from "./proxy-overhead/start-alone.ts";

const { values: options } = parseArgs({ options: { calls: { type: "string", default: "2000" } } });
const payload = payloadOf("b");
const callsAStep = 200;
const allowedMb = 20;
const megabytes = (bytes: number): number => bytes / 2 ** 20;

const before = surroundings();
await using alone = await startAlone();
const { alidade } = alone;

const steps: { calls: number; used: number; rss: number }[] = [];
for (let calls = callsAStep; calls <= Number(options.calls); calls += callsAStep) {
  const keys = await alidade.ask<string[]>("open", callsAStep / payload.turns);
  await alone.play({ payload: payload.name, concurrency: 16, keys });
  const recorded = await takeRecorded(await alidade.ask<string>("close"));
  if (recorded.whole !== callsAStep) throw new Error(`of ${callsAStep} calls the log holds ${JSON.stringify(recorded)}`);
  steps.push({ calls, ...(await alidade.ask<{ used: number; rss: number }>("memory")) });
}
const first = steps[0]!;
const lines = steps.map(({ calls, used, rss }) => [
  String(calls),
  megabytes(used).toFixed(1),
  megabytes(used - first.used).toFixed(1),
  megabytes(rss).toFixed(0),
]);
const largest = Math.max(...steps.map(({ used }) => Math.abs(megabytes(used - first.used))));
console.log(
  `${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before, ${surroundings().load.toFixed(1)} after\n`,
);
console.log(markdownTable(["calls", "in use MB", "since the first 200", "resident MB"], lines).join("\n"));
console.log(
  `\n${largest <= allowedMb ? "flat" : "NOT FLAT"}: at most ${largest.toFixed(1)} MB away from what it was after ${callsAStep} calls (allowed: ${allowedMb})`,
);
