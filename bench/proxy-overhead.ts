/**
 * What does the proxy cost against a bare hono + undici `dispatch` pass-through?
 *
 *     npm run bench                          the table, about three minutes
 *     npm run bench -- --payload b           one payload (repeatable)
 *     npm run bench -- --json                the same as JSON
 *     npm run bench -- --quick               a smoke test: the numbers mean nothing
 *     npm run bench -- --profile DIR         also writes a CPU profile of alidade a row (a play of its own after the rounds)
 *
 * One mock upstream, one load generator and the contestants, each a process. A round plays every contestant after the
 * other, so that all see the same noise; ratios are taken within a round and the median of the rounds is told.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Child } from "./child.ts";
import { cpuSeconds, quantile, spread, surroundings } from "./measure.ts";
import type { Play, Played } from "./proxy-overhead/load.ts";
import { startNginx } from "./proxy-overhead/nginx.ts";
import { type PayloadName, payloadOf, payloads } from "./proxy-overhead/payloads.ts";
import { takeRecorded } from "./proxy-overhead/recorded.ts";
import { type Cell, type Report, type Row, renderReport } from "./proxy-overhead/table.ts";

const { values: options } = parseArgs({
  options: {
    payload: { type: "string", multiple: true, default: payloads.map(({ name }) => name) },
    shape: { type: "string", multiple: true, default: ["growing", "one-shot"] },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "1" },
    json: { type: "boolean", default: false },
    quick: { type: "boolean", default: false },
    profile: { type: "string" },
  },
});
const rounds = options.quick ? 1 : Number(options.rounds);
const secondsACell = options.quick ? 0.05 : Number(options.seconds);
const concurrent = options.quick ? 2 : 16;

/** By then V8 has compiled what there is to compile: before, that is a third of a proxy's CPU. */
const warmUpCalls = 1_000;

type Shape = Play["shape"];
type Contestant = { name: Cell["contestant"]; pid: number; url: string; child?: Child };

const shapes = (["growing", "one-shot"] as const).filter((shape) => options.shape.includes(shape));
const file = (name: string): string => join(import.meta.dirname, "proxy-overhead", name);

const report = await measure();
console.log(options.json ? JSON.stringify(report, null, 2) : renderReport(report));

async function measure(): Promise<Report> {
  const before = surroundings();
  await using upstream = new Child(file("mock-upstream.ts"));
  await using load = new Child(file("load.ts"));
  await using passThrough = new Child(file("pass-through.ts"));
  await using alidade = new Child(file("alidade.ts"));
  const replies = await upstream.ask<Report["replies"]>("prepare");
  const url = await upstream.ask<string>("url");
  await using nginx = await startNginx(url);
  if (!nginx) console.error("nginx is left out: it is not installed (Debian: apt-get install nginx-light)");
  const contestants: Contestant[] = [
    { name: "direct", pid: upstream.pid, url },
    ...(nginx ? [{ name: "nginx" as const, pid: nginx.pid, url: nginx.url }] : []),
    { name: "pass-through", pid: passThrough.pid, url: await passThrough.ask<string>("start", url) },
    { name: "alidade", pid: alidade.pid, url: await alidade.ask<string>("start", url), child: alidade },
  ];
  const rows: Row[] = [];
  for (const name of options.payload)
    for (const shape of shapes) rows.push(await measureRow(contestants, load, payloadOf(name).name, shape));
  return { ...before, loadAfter: surroundings().load, rounds, concurrent, replies, rows };
}

async function measureRow(contestants: Contestant[], load: Child, payload: PayloadName, shape: Shape): Promise<Row> {
  const speed = new Map<string, number>();
  // Warms both sides up (what is measured is a proxy that has run for a while), and tells how many calls make a cell.
  const turns = shape === "growing" ? payloadOf(payload).turns : 1;
  for (const contestant of contestants) {
    const sessions = options.quick ? concurrent : Math.max(concurrent, Math.ceil(warmUpCalls / turns));
    const { played } = await playOnce(contestant, load, payload, shape, concurrent, sessions);
    speed.set(contestant.name, played.calls / played.seconds);
  }
  const cells: Cell[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const contestant of contestants) {
      const sessions = (secondsACell * speed.get(contestant.name)!) / turns;
      const alone = await playOnce(contestant, load, payload, shape, 1, Math.ceil(sessions / 2));
      const many = await playOnce(contestant, load, payload, shape, concurrent, Math.ceil(sessions / concurrent) * concurrent);
      cells.push(toCell(contestant.name, round, alone.played, many));
    }
  }
  const { child, url } = contestants.find(({ name }) => name === "alidade")!;
  if (options.profile && child) await profile({ child, url }, load, payload, shape);
  return { payload, shape, cells, ...summarise(cells) };
}

type Outcome = { played: Played; cpu: number | null; recorded: Cell["recorded"] };

async function playOnce(
  contestant: Contestant,
  load: Child,
  payload: PayloadName,
  shape: Shape,
  concurrency: number,
  sessions: number,
): Promise<Outcome> {
  const keys = (await contestant.child?.ask<string[]>("open", sessions)) ?? null;
  const begin = cpuSeconds(contestant.pid);
  const played = await load.ask<Played>("play", { url: contestant.url, payload, shape, sessions, concurrency, keys } satisfies Play);
  const end = cpuSeconds(contestant.pid);
  const recorded = contestant.child ? await takeRecorded(await contestant.child.ask<string>("close")) : null;
  // A number is used only when the work behind it was done: every call recorded with its ids, each turn tied to the last.
  const linked = shape === "growing" ? played.calls - sessions : 0;
  if (recorded && (recorded.whole !== played.calls || recorded.delivered !== played.calls || recorded.linked !== linked))
    throw new Error(`of ${played.calls} calls (${linked} with a parent) the log holds ${JSON.stringify(recorded)}`);
  return { played, cpu: begin === null || end === null ? null : end - begin, recorded };
}

async function profile({ child, url }: { child: Child; url: string }, load: Child, payload: PayloadName, shape: Shape): Promise<void> {
  const sessions = concurrent * (shape === "growing" ? 1 : 8);
  const keys = await child.ask<string[]>("open", sessions);
  await child.ask("profileStart");
  const play = { url, payload, shape, sessions, concurrency: concurrent, keys } satisfies Play;
  const { calls } = await load.ask<Played>("play", play);
  await child.ask("profileStop", join(options.profile!, `${payload}-${shape}-${calls}-calls.cpuprofile`));
  await takeRecorded(await child.ask<string>("close"));
}

function toCell(contestant: Cell["contestant"], round: number, alone: Played, many: Outcome): Cell {
  return {
    contestant,
    round,
    p50Ms: quantile(
      alone.latencies.toSorted((a, b) => a - b),
      0.5,
    ),
    callsAlone: alone.calls / alone.seconds,
    callsAtMany: many.played.calls / many.played.seconds,
    cpuMs: many.cpu === null ? null : (many.cpu * 1000) / many.played.calls,
    calls: alone.calls + many.played.calls,
    sentBytes: many.played.bytesSent / many.played.calls,
    receivedBytes: many.played.bytesReceived / many.played.calls,
    recorded: many.recorded,
  };
}

/** Per contestant over the rounds; ratios are to the pass-through of the same round. */
function summarise(cells: Cell[]): Pick<Row, "contestants"> {
  const of = (name: Cell["contestant"], round: number) => cells.find((cell) => cell.contestant === name && cell.round === round)!;
  const every = <T>(take: (round: number) => T): T[] => Array.from({ length: rounds }, (_, round) => take(round));
  const added = (name: Cell["contestant"], round: number) => of(name, round).p50Ms - of("direct", round).p50Ms;
  const names = [...new Set(cells.map((cell) => cell.contestant))];
  const isCompared = (name: Cell["contestant"]): boolean => name === "nginx" || name === "alidade";
  const contestants = names.map((name) => ({
    name,
    p50Ms: spread(every((round) => of(name, round).p50Ms)),
    addedMs: name === "direct" ? null : spread(every((round) => added(name, round))),
    addedRatio: isCompared(name) ? spread(every((round) => added(name, round) / added("pass-through", round))) : null,
    cpuMs: spread(every((round) => of(name, round).cpuMs)),
    cpuRatio: isCompared(name) ? spread(every((round) => over(of(name, round).cpuMs, of("pass-through", round).cpuMs))) : null,
    callsAlone: spread(every((round) => of(name, round).callsAlone)),
    callsAtMany: spread(every((round) => of(name, round).callsAtMany)),
    callsRatio: isCompared(name) ? spread(every((round) => of(name, round).callsAtMany / of("pass-through", round).callsAtMany)) : null,
    sentBytes: of(name, 0).sentBytes,
    receivedBytes: of(name, 0).receivedBytes,
  }));
  return { contestants };
}

function over(a: number | null, b: number | null): number | null {
  return a === null || b === null || b === 0 ? null : a / b;
}
