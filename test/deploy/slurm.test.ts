/** deploy/slurm/alidade.sbatch in a real Slurm of two machines, over a real Postgres and a real service. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { Slurm } from "../fakes/machine/slurm.ts";
import { root } from "../fakes/processes/cli.ts";
import { clusterAt, reader, submit } from "../fakes/processes/cluster-at.ts";
import { launchedNodes } from "../fakes/processes/launched-nodes.ts";
import { solve } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("slurm");
const postgres = postgresFor();
const script = join(root, "deploy/slurm/alidade.sbatch");
/** Two rollouts each. */
const groups = 12;
/** Six starts of the command line and two dozen rollouts, on a machine with other work. */
const timeout = 600_000;

test("a job's nodes join, are drained and come back when it is queued again, start anew after kill -9, and end by TERM", {
  timeout,
}, async (t) => {
  if (!((await need(t, "slurm")) && (await need(t, "postgres")))) return;
  const gate = Promise.withResolvers<void>();
  const at = await clusterAt(t, join(scratch, "cluster"), await postgres(), (request) => ({
    ...solve(request),
    ...(request.tools && { before: gate.promise }),
  }));
  const folder = join(scratch, "slurm");
  const { out, env, args, names, areThere } = await launchedNodes(at, folder);
  const slurm = await Slurm.start(folder, ["n1", "n2"]);
  t.after(() => slurm[Symbol.asyncDispose]());
  // By sbatch's own environment: with variables in --export Slurm makes a login shell's first, for a minute in a bare machine.
  Object.assign(slurm.env, env);
  const how = ["--parsable", "--nodes=2", `--output=${join(folder, "job.log")}`];
  const job = await slurm.run("sbatch", ...how, script, ...args);

  const logged = () => readFile(join(folder, "job.log"), "utf8");
  await areThere("n1", "n2");
  // More than two nodes claim ahead of what they run.
  const set = await submit(at, groups);
  const { lines, read } = reader(at, set);
  const calls = () => at.engine.requests.filter(({ tools }) => tools).length;
  await at.service.until(() => calls() === 2);
  await slurm.run("scancel", "--batch", "--signal=USR1", job);
  await at.service.until(async () => (await logged()).split("alidade: stopping").length === 3);
  assert.equal(await slurm.stateOf(job), "RUNNING", "what its nodes have begun ends first");
  gate.resolve();
  await areThere();
  const drained = await read();
  assert.ok(drained >= 2 && drained < 2 * groups, `${drained} of ${2 * groups}`);
  assert.ok(lines.every(({ result }) => result.attempt === 1 && result.state === "completed"));

  await at.service.until(async () => (await slurm.stateOf(job)) === "PENDING" && (await slurm.isIdle()));
  // Slurm lets a job that is queued again wait for two minutes, and a machine refuses one that was allocated in the very second in
  // which its first run was ended ("Job credential revoked").
  await slurm.run("scontrol", "update", `JobId=${job}`, "StartTime=now+2");
  await areThere("n1", "n2");
  process.kill(Number(await readFile(join(out, "n1/pid"), "utf8")), "SIGKILL");
  await at.service.until(async () => /node on n1 ended with 137; it is started again/.test(await logged()));
  await at.service.until(async () => (await read()) === 2 * groups);
  assert.ok(lines.every(({ result }) => result.state === "completed" && result.reward === 1));
  await at.service.until(async () => (await logged()).split("alidade: node n1 works").length === 4);

  await slurm.run("scancel", "--batch", "--signal=TERM", job);
  await at.service.until(async () => (await slurm.stateOf(job)) === "COMPLETED");
  assert.deepEqual(await names(), []);
  const restarts = /Restarts=(\d+)/.exec(await slurm.run("scontrol", "show", "job", job))?.[1];
  assert.equal(restarts, "1");
});
