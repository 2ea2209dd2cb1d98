/** The report of the proxy-overhead benchmark, and how a person reads it. */
import { markdownTable, type Spread, type Surroundings, told } from "../measure.ts";
import { payloadOf } from "./payloads.ts";
import type { Recorded } from "./recorded.ts";

/** One contestant in one round. */
export type Cell = {
  /** direct, nginx, pass-through, alidade, or a peer. */
  contestant: string;
  round: number;
  /** Milliseconds a call, one call at a time. */
  p50Ms: number;
  callsAlone: number;
  callsAtMany: number;
  /** CPU of the contestant's own process (direct: the mock upstream's) a call, many at a time. */
  cpuMs: number | null;
  calls: number;
  sentBytes: number;
  receivedBytes: number;
  recorded: Recorded | null;
};

export type Row = {
  payload: string;
  shape: string;
  contestants: {
    name: string;
    p50Ms: Spread | null;
    addedMs: Spread | null;
    addedRatio: Spread | null;
    cpuMs: Spread | null;
    cpuRatio: Spread | null;
    callsAlone: Spread | null;
    callsAtMany: Spread | null;
    callsRatio: Spread | null;
    sentBytes: number;
    receivedBytes: number;
  }[];
  cells: Cell[];
};

export type Report = Surroundings & {
  loadAfter: number;
  rounds: number;
  concurrent: number;
  /** Size on the wire of the middle turn's answer, whole and streamed. */
  replies: { name: string; whole: number; stream: number; paced: number; promptIds: number }[];
  rows: Row[];
};

export function renderReport(report: Report): string {
  const head = [
    "What does the proxy cost against a bare hono + undici dispatch pass-through?",
    "",
    `${report.machine}; Node ${report.node}; commit ${report.commit}; load ${report.load.toFixed(1)} before, ${report.loadAfter.toFixed(1)} after`,
    `${report.rounds} interleaved rounds, medians (lowest–highest). × is to the pass-through of the same round.`,
    "alidade: vllm adapter, log on disk, buffered relay, restore and retry detection on, training sessions.",
    "growing: every turn of append-only sessions; one-shot: the middle turn as the first call of a session.",
    `added p50 and calls/s at 1: one call at a time; CPU and calls/s at ${report.concurrent}: ${report.concurrent} sessions at a time.`,
  ];
  const columns = [
    "payload",
    "contestant",
    "added p50 ms",
    "×",
    "CPU ms/call",
    "×",
    "calls/s at 1",
    `calls/s at ${report.concurrent}`,
    "×",
  ];
  const lines = report.rows.flatMap((row) =>
    row.contestants.map((one) => [
      `${row.payload} ${row.shape}`,
      one.name,
      one.addedMs ? told(one.addedMs) : `(p50 ${told(one.p50Ms)})`,
      told(one.addedRatio),
      told(one.cpuMs),
      told(one.cpuRatio),
      told(one.callsAlone),
      told(one.callsAtMany),
      told(one.callsRatio),
    ]),
  );
  return [
    ...head,
    "",
    ...markdownTable(columns, lines),
    "",
    "What moves, kB a call (the middle turn's answer upstream; the mean of all calls at the client):",
    ...moved(report),
  ].join("\n");
}

/** The two do not move the same bytes: alidade has its engine stream, many tokens a chunk, and a harness gets no ids. */
function moved(report: Report): string[] {
  const columns = [
    "payload",
    "request",
    "upstream's answer to pass-through",
    "… to alidade",
    "client gets of pass-through",
    "… of alidade",
  ];
  const lines = report.rows.map((row) => {
    const sizes = report.replies.find(({ name }) => name === row.payload)!;
    const through = row.contestants.find(({ name }) => name === "pass-through")!;
    const ours = row.contestants.find(({ name }) => name === "alidade")!;
    const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1);
    return [
      `${row.payload} ${row.shape}`,
      kilobytes(ours.sentBytes),
      kilobytes(payloadOf(row.payload).stream ? sizes.stream : sizes.whole),
      kilobytes(sizes.paced),
      kilobytes(through.receivedBytes),
      kilobytes(ours.receivedBytes),
    ];
  });
  return markdownTable(columns, lines);
}
