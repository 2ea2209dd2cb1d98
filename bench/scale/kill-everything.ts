/**
 * Is a rollout lost or doubled when everything that has a part in it is killed with -9, again and again?
 *
 *     node bench/scale/kill-everything.ts [--kills 100] [--rollouts 200] [--seed 1] [--concurrency 3] [--victims node,engine] [--json] [--keep]
 *
 * Real parts: a Postgres, a service, two nodes with Docker sandboxes, the practice engine, a trainer in Python. A supervisor
 * starts again what it would in a cluster; containers and harnesses are the rollout's own, so their end is its result or it is
 * made again.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SeededRandom } from "../../practice/model/random.ts";
import { markdownTable, numbersOf, surroundings } from "../measure.ts";
import { auditKills } from "./kills/audit-kills.ts";
import { KillCluster, type Victim, victims } from "./kills/kill-cluster.ts";
import { RerunClock } from "./kills/rerun-clock.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    rollouts: { type: "string", default: "200" },
    seed: { type: "string", default: "1" },
    concurrency: { type: "string", default: "3" },
    victims: { type: "string", default: victims.join(",") },
    json: { type: "boolean", default: false },
    /** The folder with all logs stays. */
    keep: { type: "boolean", default: false },
  },
});
const { kills, rollouts, seed, concurrency } = numbersOf(values, "kills", "rollouts", "seed", "concurrency");
const chosen = victims.filter((victim) => values.victims.split(",").includes(victim));
const samples = 2;
const groups = rollouts / samples;
const random = new SeededRandom(seed);
const choose = <T>(among: readonly T[]): T | null => among[Math.floor(random.uniform() * among.length)] ?? null;

/** A third of the kills of what a supervisor starts again lasts longer than calls wait (15 s), than they live (25 s), than a lease (30 s). */
function downTime(victim: Victim): number {
  if (victim !== "node" && victim !== "postgres" && victim !== "engine") return random.uniform() * 2_000;
  return random.uniform() < 2 / 3 ? random.uniform() * 3_000 : 10_000 + random.uniform() * 35_000;
}

/** Without a result in this time, and nothing killed, the cluster hangs. */
const hangsAfterMs = 180_000;

const place = await mkdtemp(join(tmpdir(), "alidade-kills-"));
const began = Date.now();
const say = (text: string): void => console.error(`${((Date.now() - began) / 1000).toFixed(0).padStart(5)} s  ${text}`);
say(`everything is in ${place}`);
const done: { victim: Victim; what: string; at: number }[] = [];

await using cluster = await KillCluster.start({ place, groups, samples, concurrency });
const reruns = new RerunClock(cluster, say);

async function finished(): Promise<number | null> {
  const rows = await cluster.ask("SELECT count(*) FROM results");
  return rows === null ? null : Number(rows[0]?.count);
}

/** Each kill has its place among the results, so that they come over the whole time however fast it goes. */
const places = Array.from({ length: kills }, () => random.uniform() * rollouts * 0.97).toSorted((one, other) => one - other);

/** One for each node that was killed: until its rollouts run again. */
const watches: Promise<void>[] = [];

async function killNext(): Promise<void> {
  for (;;) {
    // Somewhere within a rollout's few seconds, and not just behind a result.
    await sleep(random.uniform() * 3_000);
    // Another one each time: of some victims there may be none for long.
    const victim = choose(chosen) ?? "node";
    const downMs = downTime(victim);
    const running = victim === "node" ? await reruns.running() : [];
    const what = await cluster.kill(victim, downMs, choose);
    if (what === null) continue;
    done.push({ victim, what, at: Date.now() - began });
    say(`kill ${done.length}: ${what}${/^node|postgres|engine/.test(what) ? `, dead for ${(downMs / 1000).toFixed(1)} s` : ""}`);
    if (victim === "node") watches.push(reruns.watch(what.replace("node-", ""), running));
    return;
  }
}

async function killAll(): Promise<void> {
  let last = { count: -1, at: Date.now() };
  while (done.length < kills) {
    const count = (await finished()) ?? last.count;
    if (count > last.count) {
      if (Math.floor(count / 10) > Math.floor(last.count / 10)) say(`${count} of ${rollouts} rollouts are over`);
      last = { count, at: Date.now() };
    }
    const due = places.filter((place) => place <= count).length;
    if (done.length < due) {
      await killNext();
      last = { ...last, at: Date.now() };
    } else await sleep(300);
    if (Date.now() - last.at > hangsAfterMs) throw new Error(`no rollout has ended for ${hangsAfterMs / 1000} s: look at ${place}/logs`);
  }
}

await killAll();
say("all kills are done: the trainer takes what is left");
await Promise.race([
  cluster.parts.trainer.done,
  sleep(600_000).then(() => Promise.reject(new Error(`the trainer does not end: look at ${place}/logs`))),
]);
say("the trainer has ended");
await Promise.all(watches);
await cluster.stop();
const audit = await auditKills(cluster, rollouts);
const fell = Object.fromEntries(Object.values(cluster.parts).map((part) => [part.name, part.fell]));
const isSound = audit.lost + audit.doubled + audit.wrong.length + audit.left.length === 0;
const report = {
  ...surroundings(),
  seed,
  seconds: Math.round((Date.now() - began) / 1000),
  kills: Object.fromEntries(victims.map((victim) => [victim, done.filter((one) => one.victim === victim).length])),
  ...audit,
  /** Ends by themselves: a node that starts while Postgres is down, say. */
  fell,
  rerun_seconds: reruns.times,
};
if (values.json) console.log(JSON.stringify(report));
else {
  console.log(
    markdownTable(
      ["killed with -9", "times"],
      victims.map((victim) => [victim, String(report.kills[victim])]),
    ).join("\n"),
  );
  console.log(JSON.stringify({ ...report, kills: undefined }, null, 2));
}
if (!values.keep && isSound) await rm(place, { recursive: true, force: true });
process.exitCode = isSound ? 0 : 1;
