/**
 * What do many live streams at once cost, beside a relay that hands bytes on?
 *
 *     node bench/live-streams.ts [--streams 1000 --streams 2000] [--tokens 500] [--rounds 3]
 *
 * Every stream gets a token four times a second, one a chunk; alidade relays it live: parsed, written anew in the
 * harness's dialect, recorded. The pass-through is hono and undici's `dispatch`, bytes through. Rounds are interleaved,
 * ratios within a round; every cell is a process of its own, warmed up, or the second would find the first one's memory.
 * CPU is per token of the engine, for both, the opening and the end of the streams included.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Child } from "./child.ts";
import type { Streamed, Streams } from "./live-streams/load.ts";
import type { Watched } from "./loop-delay.ts";
import { cpuSeconds, markdownTable, type Spread, spread, surroundings, told } from "./measure.ts";
import type { Payload } from "./proxy-overhead/payloads.ts";
import { takeRecorded } from "./proxy-overhead/recorded.ts";

const { values: options } = parseArgs({
  options: {
    streams: { type: "string", multiple: true, default: ["1000", "2000"] },
    tokens: { type: "string", default: "500" },
    rounds: { type: "string", default: "3" },
  },
});
const rampMs = 2_000;
const inFolder = (folder: string, name: string): string => join(import.meta.dirname, folder, name);
const contestants = ["pass-through", "alidade"] as const;
type Contestant = (typeof contestants)[number];
type Cell = { cpuUs: number | null; delayP99Ms: number; peakMb: number; kbAStream: number; failed: number };
type Played = { child: Child; url: string; count: number; tokens: number };

const before = surroundings();
await using upstream = new Child(inFolder("live-streams", "upstream.ts"));
await using load = new Child(inFolder("live-streams", "load.ts"));
const url = await upstream.ask<string>("url");

const lines: string[][] = [];
for (const count of options.streams.map(Number)) {
  const cells = new Map<Contestant, Cell[]>(contestants.map((name) => [name, []]));
  for (let round = 0; round < Number(options.rounds); round++)
    for (const name of contestants) cells.get(name)!.push(await measure(name, count));
  for (const name of contestants) {
    const [mine, theirs] = [cells.get(name)!, cells.get("pass-through")!];
    const value = (take: (cell: Cell) => number | null): Spread | null => spread(mine.map(take));
    const ratio = (take: (cell: Cell) => number | null): string =>
      name === "pass-through"
        ? ""
        : told(spread(mine.map((cell, round) => (take(cell) ?? Number.NaN) / (take(theirs[round]!) ?? Number.NaN))));
    const figures: ((cell: Cell) => number | null)[] = [
      (cell) => cell.cpuUs,
      (cell) => cell.delayP99Ms,
      (cell) => cell.peakMb,
      (cell) => cell.kbAStream,
    ];
    lines.push([
      String(count),
      name,
      ...figures.flatMap((take) => [told(value(take)), ratio(take)]),
      String(mine.reduce((sum, cell) => sum + cell.failed, 0)),
    ]);
  }
}
console.log(
  `${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before, ${surroundings().load.toFixed(1)} after`,
);
console.log(
  `${options.rounds} interleaved rounds, ${options.tokens} tokens a stream. × is to the pass-through of the same round. MB: resident at most; kB a stream: what of it came with the streams.\n`,
);
const columns = ["streams", "", "CPU µs a token", "×", "event loop p99 ms", "×", "MB", "×", "kB a stream", "×", "errors"];
console.log(markdownTable(columns, lines).join("\n"));

async function measure(name: Contestant, count: number): Promise<Cell> {
  await using child = new Child(inFolder("proxy-overhead", `${name}.ts`));
  const at = await child.ask<string>("start", url);
  await play(name, { child, url: at, count: 200, tokens: 48 });
  return await play(name, { child, url: at, count, tokens: Number(options.tokens) });
}

async function play(name: Contestant, { child, url: at, count, tokens }: Played): Promise<Cell> {
  const payload = await upstream.ask<Payload>("tokens", tokens);
  const keys = name === "alidade" ? await child.ask<string[]>("openLive", count) : null;
  const rss = await child.ask<number>("watch");
  const begin = cpuSeconds(child.pid);
  const streamed = await load.ask<Streamed>("play", { url: at, payload, count, keys, rampMs } satisfies Streams);
  const end = cpuSeconds(child.pid);
  const watched = await child.ask<Watched>("watched");
  if (keys) {
    const recorded = await takeRecorded(await child.ask<string>("close"));
    if (recorded.whole !== streamed.whole) throw new Error(`of ${streamed.whole} streams the log holds ${JSON.stringify(recorded)}`);
  }
  if (streamed.failed.length > 0) console.error(name, count, streamed.failed);
  return {
    cpuUs: begin === null || end === null ? null : ((end - begin) * 1e6) / (count * tokens),
    delayP99Ms: watched.delayP99Ms,
    peakMb: watched.peakRss / 2 ** 20,
    kbAStream: (watched.peakRss - rss) / 1024 / count,
    failed: count - streamed.whole,
  };
}
