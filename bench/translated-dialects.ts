/**
 * What does translation cost: Messages or Responses in, chat completions out, beside chat in?
 *
 *     node bench/translated-dialects.ts [--rounds 5] [--sessions 32] [--json]
 *
 * The agentic payload of proxy-overhead in growing sessions, the same conversation in each dialect, one proxy. Rounds
 * are interleaved; a ratio is taken within a round, to chat.
 */
import { parseArgs } from "node:util";
import { cpuSeconds, markdownTable, quantile, spread, surroundings, told } from "./measure.ts";
import { payloadOf } from "./proxy-overhead/payloads.ts";
import { takeRecorded } from "./proxy-overhead/recorded.ts";
import { startAlone } from "./proxy-overhead/start-alone.ts";
import { type WireName, wires } from "./proxy-overhead/wires.ts";

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    sessions: { type: "string", default: "32" },
    json: { type: "boolean", default: false },
  },
});
const concurrency = 16;
const payload = payloadOf("b");
const names = Object.keys(wires) as WireName[];

type Cell = { p50Ms: number; cpuMs: number | null; calls: number };

const before = surroundings();
await using alone = await startAlone();
const { alidade } = alone;

for (const wire of names) await measure(wire, Number(options.sessions));
const rounds: Record<WireName, Cell>[] = [];
for (let round = 0; round < Number(options.rounds); round++) {
  const cells = {} as Record<WireName, Cell>;
  for (const wire of names) cells[wire] = await measure(wire, Number(options.sessions));
  rounds.push(cells);
}
const report = names.map((wire) => {
  const every = (take: (cell: Cell) => number | null) => spread(rounds.map((cells) => take(cells[wire])));
  const ratio = (take: (cell: Cell) => number | null) =>
    spread(rounds.map((cells) => (take(cells[wire]) ?? Number.NaN) / (take(cells["openai-chat"]) ?? Number.NaN)));
  const measures = [(cell: Cell) => cell.p50Ms, (cell: Cell) => cell.cpuMs, (cell: Cell) => cell.calls] as const;
  return { wire, values: measures.map((take) => ({ value: every(take), ratio: ratio(take) })) };
});
if (options.json) console.log(JSON.stringify({ ...before, loadAfter: surroundings().load, report, rounds }, null, 2));
else {
  console.log(
    `${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before, ${surroundings().load.toFixed(1)} after`,
  );
  console.log(
    `${rounds.length} interleaved rounds, payload b growing, ${concurrency} sessions at a time. × is to chat in the same round.\n`,
  );
  const columns = ["harness speaks", "p50 ms", "×", "CPU ms/call", "×", "calls/s", "×"];
  const lines = report.map(({ wire, values }) => [wire, ...values.flatMap(({ value, ratio }) => [told(value), told(ratio)])]);
  console.log(markdownTable(columns, lines).join("\n"));
}

async function measure(wire: WireName, sessions: number): Promise<Cell> {
  const keys = await alidade.ask<string[]>("open", sessions);
  const begin = cpuSeconds(alidade.pid);
  const played = await alone.play({ payload: payload.name, concurrency, keys, wire });
  const end = cpuSeconds(alidade.pid);
  const recorded = await takeRecorded(await alidade.ask<string>("close"));
  const linked = played.calls - sessions;
  if (recorded.whole !== played.calls || recorded.delivered !== played.calls || recorded.linked !== linked)
    throw new Error(`${wire}: of ${played.calls} calls (${linked} with a parent) the log holds ${JSON.stringify(recorded)}`);
  return {
    p50Ms: quantile(
      played.latencies.toSorted((a, b) => a - b),
      0.5,
    ),
    cpuMs: begin === null || end === null ? null : ((end - begin) * 1000) / played.calls,
    calls: played.calls / played.seconds,
  };
}
