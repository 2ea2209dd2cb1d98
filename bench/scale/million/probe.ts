/**
 * A process that asks a service for its health, over and over, and beside it a server that does nothing: what that one takes is the
 * machine's doing. It also reads how much memory the service has.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { answerParent } from "../../child.ts";
import { quantile } from "../../measure.ts";

export type Probed = { url: string; plainUrl: string; token: string; pid: number };

/** Milliseconds; NaN where nothing was asked. */
export type Latencies = { asked: number; median: number; p99: number; most: number };

/** `residentMb`: the least and the most of the service. `bad`: answers that were no 200. */
export type Phase = { health: Latencies; plain: Latencies; bad: number; residentMb: [least: number, most: number] };

const pauseMs = 50;

const stop = new AbortController();
let asked: { health: number[]; plain: number[]; bad: number; resident: number[] } = { health: [], plain: [], bad: 0, resident: [] };

async function begin({ url, plainUrl, token, pid }: Probed): Promise<void> {
  const ask = async (address: string, into: () => number[]): Promise<void> => {
    const began = performance.now();
    const response = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
    await response.text();
    if (!response.ok) asked.bad += 1;
    into().push(performance.now() - began);
  };
  const loop = async (address: string, into: () => number[]): Promise<void> => {
    while (!stop.signal.aborted) {
      await ask(address, into).catch(() => {
        asked.bad += 1;
      });
      asked.resident.push(residentMb(pid));
      await sleep(pauseMs);
    }
  };
  void loop(`${url}/health`, () => asked.health);
  void loop(plainUrl, () => asked.plain);
}

/** What was seen since the last call. A question that is still open belongs to the next phase. */
function phase(): Phase {
  const { health, plain, bad, resident } = asked;
  asked = { health: [], plain: [], bad: 0, resident: [] };
  return { health: latencies(health), plain: latencies(plain), bad, residentMb: [Math.min(...resident), Math.max(...resident)] };
}

function latencies(all: number[]): Latencies {
  const sorted = all.toSorted((one, other) => one - other);
  const at = (q: number): number => (sorted.length === 0 ? Number.NaN : quantile(sorted, q));
  return { asked: sorted.length, median: at(0.5), p99: at(0.99), most: at(1) };
}

function residentMb(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

answerParent({ begin: (probed: Probed) => begin(probed), phase }, async () => stop.abort());
