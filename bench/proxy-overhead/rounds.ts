/** Plays every contestant in interleaved rounds and sums them up; proxy-overhead.ts and readme-figures.ts say of which and how. */
import { join } from "node:path";
import { Child } from "../child.ts";
import { cpuSecondsWithChildren, quantile, spread, surroundings } from "../measure.ts";
import type { Play, Played } from "./load.ts";
import { startNginx } from "./nginx.ts";
import { type PayloadName, payloadOf } from "./payloads.ts";
import { takeRecorded } from "./recorded.ts";
import type { Cell, Report, Row } from "./table.ts";

/** By then V8 has compiled what there is to compile: before, that is a third of a proxy's CPU. */
const warmUpCalls = 1_000;

export type OverheadOptions = {
  payloads: readonly string[];
  shapes: readonly Play["shape"][];
  rounds: number;
  /** Seconds that a contestant is played in one round, as far as its speed is known before. */
  secondsACell: number;
  concurrent: number;
  /** Nothing is warmed up. */
  quick: boolean;
  /** A folder for CPU profiles of alidade. */
  profile?: string;
  /** Proxies of others, started in front of this upstream. */
  peers?: (upstream: string) => Promise<Peer[]>;
};

/** `sessionHeader`: how it is told which session a call is of. */
export type Peer = AsyncDisposable & { name: string; pid: number; url: string; sessionHeader: string };

type Contestant = { name: string; pid: number; url: string; child?: Child; sessionHeader?: string };

const file = (name: string): string => join(import.meta.dirname, name);

export async function measureOverhead(options: OverheadOptions): Promise<Report> {
  const before = surroundings();
  await using upstream = new Child(file("mock-upstream.ts"));
  await using load = new Child(file("load.ts"));
  await using passThrough = new Child(file("pass-through.ts"));
  await using alidade = new Child(file("alidade.ts"));
  const replies = await upstream.ask<Report["replies"]>("prepare");
  const url = await upstream.ask<string>("url");
  await using nginx = await startNginx(url);
  if (!nginx) console.error("nginx is left out: it is not installed (Debian: apt-get install nginx-light)");
  await using others = new AsyncDisposableStack();
  const peers = (await options.peers?.(url)) ?? [];
  for (const peer of peers) others.use(peer);
  const contestants: Contestant[] = [
    { name: "direct", pid: upstream.pid, url },
    ...(nginx ? [{ name: "nginx", pid: nginx.pid, url: nginx.url }] : []),
    { name: "pass-through", pid: passThrough.pid, url: await passThrough.ask<string>("start", url) },
    { name: "alidade", pid: alidade.pid, url: await alidade.ask<string>("start", url), child: alidade },
    ...peers,
  ];
  const rows: Row[] = [];
  for (const name of options.payloads)
    for (const shape of options.shapes) rows.push(await measureRow(contestants, load, payloadOf(name).name, shape, options));
  const { rounds, concurrent } = options;
  return { ...before, loadAfter: surroundings().load, rounds, concurrent, replies, rows };
}

async function measureRow(
  contestants: Contestant[],
  load: Child,
  payload: PayloadName,
  shape: Play["shape"],
  { rounds, secondsACell, concurrent, quick, profile }: OverheadOptions,
): Promise<Row> {
  const speed = new Map<string, number>();
  // Warms both sides up (what is measured is a proxy that has run for a while), and tells how many calls make a cell.
  const turns = shape === "growing" ? payloadOf(payload).turns : 1;
  for (const contestant of contestants) {
    const sessions = quick ? concurrent : Math.max(concurrent, Math.ceil(warmUpCalls / turns));
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
  if (profile && child) await writeProfile({ child, url }, load, payload, shape, concurrent, profile);
  return { payload, shape, cells, ...summarise(cells, rounds) };
}

type Outcome = { played: Played; cpu: number | null; recorded: Cell["recorded"] };

async function playOnce(
  contestant: Contestant,
  load: Child,
  payload: PayloadName,
  shape: Play["shape"],
  concurrency: number,
  sessions: number,
): Promise<Outcome> {
  const keys = (await contestant.child?.ask<string[]>("open", sessions)) ?? null;
  const begin = cpuSecondsWithChildren(contestant.pid);
  const { url, sessionHeader } = contestant;
  const played = await load.ask<Played>("play", {
    ...{ url, payload, shape, sessions, concurrency, keys },
    ...(sessionHeader && { sessionHeader }),
  } satisfies Play);
  const end = cpuSecondsWithChildren(contestant.pid);
  const recorded = contestant.child ? await takeRecorded(await contestant.child.ask<string>("close")) : null;
  // A number is used only when the work behind it was done: every call recorded with its ids, each turn tied to the last.
  const linked = shape === "growing" ? played.calls - sessions : 0;
  if (recorded && (recorded.whole !== played.calls || recorded.delivered !== played.calls || recorded.linked !== linked))
    throw new Error(`of ${played.calls} calls (${linked} with a parent) the log holds ${JSON.stringify(recorded)}`);
  return { played, cpu: begin === null || end === null ? null : end - begin, recorded };
}

async function writeProfile(
  { child, url }: { child: Child; url: string },
  load: Child,
  payload: PayloadName,
  shape: Play["shape"],
  concurrency: number,
  folder: string,
): Promise<void> {
  const sessions = concurrency * (shape === "growing" ? 1 : 8);
  const keys = await child.ask<string[]>("open", sessions);
  await child.ask("profileStart");
  const { calls } = await load.ask<Played>("play", { url, payload, shape, sessions, concurrency, keys } satisfies Play);
  await child.ask("profileStop", join(folder, `${payload}-${shape}-${calls}-calls.cpuprofile`));
  await takeRecorded(await child.ask<string>("close"));
}

function toCell(contestant: string, round: number, alone: Played, many: Outcome): Cell {
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
function summarise(cells: Cell[], rounds: number): Pick<Row, "contestants"> {
  const of = (name: string, round: number) => cells.find((cell) => cell.contestant === name && cell.round === round)!;
  const every = <T>(take: (round: number) => T): T[] => Array.from({ length: rounds }, (_, round) => take(round));
  const added = (name: string, round: number) => of(name, round).p50Ms - of("direct", round).p50Ms;
  const names = [...new Set(cells.map((cell) => cell.contestant))];
  const isCompared = (name: string): boolean => name !== "direct" && name !== "pass-through";
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
