/**
 * What does the relay add to a call of a tool?
 *
 *     node bench/tools.ts [--calls 300] [--rounds 7]
 *
 * Service, relay and client are processes of their own, on loopback, one call after the other over one connection. Each
 * round plays the service directly and through the relay, for a small result and for one of 1 MB. The relay writes both
 * lines of each call to disk. Added is the difference of the medians of a round; the median of the rounds is told, with the
 * lowest and highest. CPU is the relay's own, all threads.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Agent } from "undici";
import { Child } from "./child.ts";
import { cpuSeconds, markdownTable, spread, surroundings, told } from "./measure.ts";

const { values: options } = parseArgs({
  options: { calls: { type: "string", default: "300" }, rounds: { type: "string", default: "7" } },
});
const before = surroundings();
await using service = new Child(join(import.meta.dirname, "tools", "service.ts"));
await using relay = new Child(join(import.meta.dirname, "tools", "relay.ts"));
const port = await service.ask<number>("port");
const urls = { direct: `http://127.0.0.1:${port}/mcp`, relay: await relay.ask<string>("open", port) };
const agent = new Agent({ connections: 1, pipelining: 1 });

const lines: string[][] = [];
for (const tool of ["small", "large"]) {
  const calls = Math.max(10, Number(options.calls) / (tool === "large" ? 10 : 1));
  const rounds: { direct: number; relay: number; cpu: number }[] = [];
  await played("direct", tool, calls);
  await played("relay", tool, calls);
  // A session takes 10 000 calls.
  for (let round = 0; round < Number(options.rounds); round++) {
    const direct = await played("direct", tool, calls);
    const used = cpuSeconds(relay.pid) ?? Number.NaN;
    const through = await played("relay", tool, calls);
    rounds.push({ direct, relay: through, cpu: (((cpuSeconds(relay.pid) ?? Number.NaN) - used) * 1000) / calls });
  }
  const value = (take: (round: (typeof rounds)[number]) => number) => told(spread(rounds.map(take)));
  lines.push([
    tool === "large" ? "1 MB" : "16 B",
    value(({ direct }) => direct),
    value(({ relay }) => relay),
    value((one) => one.relay - one.direct),
    value(({ cpu }) => cpu),
  ]);
}
await agent.close();
const after = surroundings();
console.log(
  `${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before, ${after.load.toFixed(1)} after\n`,
);
console.log(
  markdownTable(["result", "direct p50 ms", "through the relay p50 ms", "added ms", "CPU of the relay ms a call"], lines).join("\n"),
);

/** The median of so many calls, in milliseconds. */
async function played(way: keyof typeof urls, tool: string, calls: number): Promise<number> {
  const taken: number[] = [];
  for (let call = 0; call < calls; call++) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: call, method: "tools/call", params: { name: tool, arguments: { id: "W1" } } });
    const started = performance.now();
    const { origin, pathname } = new URL(urls[way]);
    const answer = await agent.request({ origin, path: pathname, method: "POST", headers: { "content-type": "application/json" }, body });
    const bytes = (await answer.body.arrayBuffer()).byteLength;
    taken.push(performance.now() - started);
    if (answer.statusCode !== 200 || bytes < (tool === "large" ? 1_000_000 : 16))
      throw new Error(`${way}: ${answer.statusCode}, ${bytes} bytes`);
  }
  return taken.toSorted((a, b) => a - b)[Math.floor(taken.length / 2)] as number;
}
