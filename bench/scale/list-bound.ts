/**
 * How near does a cluster come to list scheduling, the soonest that slots which never wait are done? And is a result lost or
 * doubled?
 *
 *     node bench/scale/list-bound.ts [--nodes 100] [--slots 10] [--rollouts 10000] [--sets 8] [--mean 9] [--hosts 4] [--ledger sqlite]
 */
import { parseArgs } from "node:util";
import { markdownTable, numbersOf, surroundings } from "../measure.ts";
import { Cluster } from "./cluster.ts";
import { doneAt, durationOf, listSchedule } from "./durations.ts";
import type { ProcessMemory } from "./process-memory.ts";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "100" },
    slots: { type: "string", default: "10" },
    rollouts: { type: "string", default: "10000" },
    sets: { type: "string", default: "8" },
    mean: { type: "string", default: "9" },
    hosts: { type: "string", default: "4" },
    ledger: { type: "string", default: "postgres" },
  },
});
const { nodes, slots, rollouts, sets, hosts } = numbersOf(values, "nodes", "slots", "rollouts", "sets", "hosts");
const samples = 5;
const meanSeconds = Number(values.mean);
/** The longest is the mean times seven, as sixty minutes are to nine. */
const durations = { meanSeconds, sigma: 0.8, mostSeconds: (meanSeconds * 60) / 9 };
const groups = rollouts / sets / samples;

await using cluster = await Cluster.start({ nodes, hosts, slots, durations, kind: values.ledger === "sqlite" ? "sqlite" : "postgres" });
const before = await cluster.cpu();
const began = Date.now();
const ids = await Promise.all(Array.from({ length: sets }, (_, at) => cluster.submit(`set${at}`, groups, samples)));
const submitted = Date.now() - began;
const seen = new Map<string, number>();
const finished: number[] = [];
const late: number[] = [];
/** What the service holds, at these shares of the results. */
const memory: Record<string, ProcessMemory> = {};
const looks = [0.1, 0.5, 1];
await Promise.all(
  ids.map(async (set) => {
    for await (const row of cluster.results(set, groups * samples)) {
      seen.set(row.rollout_id, (seen.get(row.rollout_id) ?? 0) + 1);
      finished.push((row.finished - began) / 1000);
      const share = looks.find((one) => Math.ceil(one * rollouts) === finished.length);
      if (share !== undefined) memory[`${share * 100} %`] = await cluster.serviceMemory();
      late.push(Date.now() - row.finished);
    }
  }),
);
const after = await cluster.cpu();
finished.sort((one, other) => one - other);
late.sort((one, other) => one - other);
// The sets have one weight each, so their lines are taken in turn.
const line = Array.from({ length: groups * samples }, (_, at) =>
  ids.map((set) => `${set}-${Math.floor(at / samples)}-${at % samples}`),
).flat();
const bound = listSchedule(
  line.map((id) => durationOf(id, durations)),
  nodes * slots,
);
const shares = [0.5, 0.95, 1];
const rows = shares.map((share) => {
  const [soonest, reached] = [doneAt(bound, share), doneAt(finished, share)];
  return [`${share * 100} %`, soonest.toFixed(1), reached.toFixed(1), `${((soonest / reached) * 100).toFixed(1)} %`];
});
const perRollout = (from: number, to: number) => `${(((to - from) * 1000) / rollouts).toFixed(2)} ms`;
console.log(JSON.stringify(surroundings()));
console.log(markdownTable(["done", "bound s", "reached s", "of the bound"], rows).join("\n"));
console.log(
  JSON.stringify({
    lost: rollouts - seen.size,
    doubled: [...seen.values()].reduce((sum, times) => sum + times - 1, 0),
    ...(await cluster.heard()),
    submitted_ms: submitted,
    service_mb: memory,
    delivered_ms: { median: doneAt(late, 0.5), p95: doneAt(late, 0.95), most: late.at(-1) },
    cpu_per_rollout: {
      ledger: perRollout(before.ledger, after.ledger),
      service: perRollout(before.service, after.service),
      nodes: perRollout(before.nodes, after.nodes),
    },
  }),
);
