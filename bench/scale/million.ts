/**
 * Does a service answer while a set of a million rollouts is submitted, claimed from, looked at and cancelled? And is each of them
 * given once?
 *
 *     node bench/scale/million.ts [--rollouts 1000000] [--samples 4] [--groups-a-request 1000] [--ledger sqlite] [--nodes 4] [--slots 25]
 */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { SetState } from "../../service/ledger/index.ts";
import { Child } from "../child.ts";
import { markdownTable, numbersOf, surroundings } from "../measure.ts";
import { Cluster } from "./cluster.ts";
import type { Phase, Probed } from "./million/probe.ts";

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "1000000" },
    samples: { type: "string", default: "4" },
    "groups-a-request": { type: "string", default: "1000" },
    ledger: { type: "string", default: "postgres" },
    nodes: { type: "string", default: "4" },
    slots: { type: "string", default: "25" },
  },
});
const { rollouts, samples, nodes, slots } = numbersOf(values, "rollouts", "samples", "nodes", "slots");
const groupsAtOnce = Number(values["groups-a-request"]);
const groups = rollouts / samples;
const kind = values.ledger === "sqlite" ? "sqlite" : "postgres";
const durations = { meanSeconds: 10, sigma: 0.8, mostSeconds: 60 };

await using cluster = await Cluster.start({ nodes, hosts: 1, slots, durations, kind });
await using plain = new Child(join(import.meta.dirname, "million/plain-server.ts"));
await using probe = new Child(join(import.meta.dirname, "million/probe.ts"));
const plainUrl = await plain.ask<string>("listen");
await probe.ask("begin", { url: cluster.url, plainUrl, token: "bench", pid: cluster.service.pid } satisfies Probed);

const table: string[][] = [];
async function phase<T>(name: string, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work();
  const seconds = (performance.now() - began) / 1000;
  const { health, plain, bad, residentMb } = await probe.ask<Phase>("phase");
  const ms = ({ asked, median, p99, most }: Phase["health"]) =>
    asked === 0 ? "" : [median, p99, most].map((one) => one.toFixed(0)).join(" / ");
  const memory = health.asked + plain.asked === 0 ? "" : residentMb.map((one) => one.toFixed(0)).join("–");
  const line = [name, seconds.toFixed(1), ms(health), ms(plain), String(bad), memory];
  table.push(line);
  console.error(line.join(" | "));
  return result;
}

const stateOf = () => cluster.ask<SetState>("GET", `/sets/${set}`);
const openOf = ({ rollouts }: SetState) => rollouts.held + rollouts.queued + rollouts.running;

await phase("idle", () => sleep(5_000));
const set = await phase("submit", async () => {
  const { set_id } = await cluster.ask<{ set_id: string }>("PUT", "/sets/million", { samples });
  const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };
  for (let at = 0; at < groups; at += groupsAtOnce) {
    const lines = Array.from({ length: Math.min(groupsAtOnce, groups - at) }, (_, more) =>
      JSON.stringify({ group_key: `g${at + more}`, task }),
    );
    await cluster.ask("POST", `/sets/${set_id}/groups`, lines.join("\n"));
  }
  return set_id;
});
await phase("claims", () => sleep(20_000));
for (const path of [`/sets/${set}`, "/sets", `/sets/${set}/figures`, "/metrics"])
  await phase(`GET ${path.replace(set, ":id")}`, async () => {
    await cluster.text("GET", path);
  });
await cluster.ask("POST", `/sets/${set}/drain`, {});
await phase("DELETE /sets/:id", async () => {
  console.error(JSON.stringify(await cluster.ask("DELETE", `/sets/${set}`)));
});
await phase("until all are over", async () => {
  while (openOf(await stateOf()) > 0) await sleep(500);
});
const seen = new Set<string>();
let doubled = 0;
await phase("read all results", async () => {
  for await (const { rollout_id } of cluster.results(set, rollouts)) {
    if (seen.has(rollout_id)) doubled += 1;
    seen.add(rollout_id);
  }
});
await phase("idle again", () => sleep(5_000));
console.log(JSON.stringify(surroundings()));
console.log(markdownTable(["phase", "s", "health ms: median / p99 / most", "a plain server", "not 200", "resident MB"], table).join("\n"));
console.log(JSON.stringify({ lost: rollouts - seen.size, doubled, ...(await stateOf()).rollouts }));
