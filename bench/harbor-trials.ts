/**
 * Compares the time from start to reward of a trial whose agent does nothing. Harbor (`-a nop`, its own defaults) and a
 * rollout of one call in Docker run the same task folder in turn, so a busy machine slows both. The figure is their ratio. Images
 * are built before, and the start of the commands is not counted. By default Harbor waits ten seconds for each container to stop. In
 * its second row it stops them at once.
 *
 *     node bench/harbor-trials.ts [rounds]        wants test/interop/harbor/install.sh
 */
import { join } from "node:path";
import { harborFolder, harborTasks } from "../test/fakes/harbor-tasks.ts";
import { type HarborJob, runHarbor } from "../test/interop/harbor/harbor.ts";
import { Child } from "./child.ts";
import { quantile, surroundings } from "./measure.ts";
import type { NoOps } from "./sandboxes/no-op-rollouts.ts";

const signal = AbortSignal.timeout(3_600_000);
const rounds = Number(process.argv[2] ?? 5);
const [greet] = harborTasks;
const tasks = await harborFolder({ "greet-file": greet?.files ?? {} });
await using child = new Child(join(import.meta.dirname, "sandboxes", "no-op-rollouts.ts"));

const ours = async (): Promise<number> => {
  const run_id = `bench${process.pid}`;
  return (await child.ask<number>("run", { run_id, rollouts: 1, concurrency: 1, warm: 0, tasks } satisfies NoOps)) / 1_000;
};
const harbors = async (quickStop: boolean): Promise<number> => {
  const [trial] = await runHarbor({ tasks, agent: "nop", quickStop } satisfies HarborJob, signal);
  if (trial?.rewards?.reward !== 0) throw new Error(`Harbor's trial failed: ${JSON.stringify(trial)}`);
  return trial.seconds;
};

const before = surroundings();
await ours();
const took: { here: number; harbor: number; quick: number }[] = [];
for (let round = 0; round < rounds; round++) took.push({ here: await ours(), harbor: await harbors(false), quick: await harbors(true) });

const median = (values: number[]): string =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  ).toFixed(2);
console.log(
  `${before.machine}, Node ${before.node}, ${before.commit}; load ${before.load.toFixed(1)} to ${surroundings().load.toFixed(1)}`,
);
console.log(`a no-op trial, median of ${rounds}: here ${median(took.map(({ here }) => here))} s`);
for (const [name, key] of [
  ["Harbor", "harbor"],
  ["Harbor, containers stopped at once", "quick"],
] as const)
  console.log(`${name}: ${median(took.map((one) => one[key]))} s; ours is ${median(took.map((one) => one.here / one[key]))} of it`);
