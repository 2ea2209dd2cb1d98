/** deploy/ray/alidade_nodes.py in a real Ray cluster of two machines, over a real Postgres and a real service. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { postgresFor } from "../fakes/machine/postgres.ts";
import { Ray } from "../fakes/machine/ray.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root } from "../fakes/processes/cli.ts";
import { clusterAt, drainedResults, submit } from "../fakes/processes/cluster-at.ts";
import { launchedNodes } from "../fakes/processes/launched-nodes.ts";
import { solve } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("ray");
const postgres = postgresFor();
const script = join(root, "deploy/ray/alidade_nodes.py");
/** A Ray cluster and five starts of the command line, on a machine with other work. */
const timeout = 600_000;

test("each machine of a Ray cluster has one node, which is drained, and begins anew after kill -9 of itself or of its actor", {
  timeout,
}, async (t) => {
  if (!((await need(t, "ray")) && (await need(t, "postgres")))) return;
  const gate = Promise.withResolvers<void>();
  const at = await clusterAt(t, join(scratch, "cluster"), await postgres(), (request) => ({
    ...solve(request),
    ...(request.tools && { before: gate.promise }),
  }));
  const { out, env, args, names, areThere } = await launchedNodes(at, join(scratch, "r"));
  const ray = await Ray.start(join(scratch, "r"), ["n1", "n2"], env);
  t.after(() => ray[Symbol.asyncDispose]());
  const nodes = (...words: string[]) => ray.python(script, ...words);
  /** How often what was said has these words. */
  const said = (words: string) => ray.logged().split(words).length - 1;
  const works = (name: string) => said(`alidade: node ${name} works`);
  const processOf = async (name: string) => Number(/ (\d+):/.exec(await readFile(join(out, name, "node/lock"), "utf8"))?.[1]);

  // Two at once make one node a machine all the same.
  assert.deepEqual(await Promise.all([nodes("start", ...args), nodes("start", ...args)]), ["n1: runs\nn2: runs", "n1: runs\nn2: runs"]);
  await areThere("n1", "n2");
  await at.service.until(() => works("n1") === 1 && works("n2") === 1);
  // An actor has a shell, and that has the node.
  process.kill(await parentOf(await parentOf(await processOf("n1"))), "SIGKILL");
  await at.service.until(() => works("n1") === 2);
  assert.equal(said("alidade: stopping"), 1, "the node of the actor that died was told to end");

  // More than two nodes claim ahead of what they run.
  const set = await submit(at, 10);
  const calls = () => at.engine.requests.filter(({ tools }) => tools).length;
  await at.service.until(() => calls() === 2);
  process.kill(await processOf("n2"), "SIGKILL");
  await at.service.until(() => works("n2") === 2 && calls() === 3);
  assert.equal(said("alidade node on n2 ended with 137; it is started again"), 1);

  const stopped = nodes("stop");
  await at.service.until(() => said("alidade: stopping") === 3);
  assert.deepEqual(await names(), ["n1", "n2"], "what they have begun ends first");
  gate.resolve();
  await stopped;
  assert.deepEqual(await names(), []);
  await drainedResults(at, set, 20);
  for (const name of ["n1", "n2"]) assert.match(await readFile(join(out, name, "node/attempts.jsonl"), "utf8"), /"reward":1/);
  assert.deepEqual(await nodes("status"), "");
});

async function parentOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}
