/** `alidade run --service` against a real `alidade service`: what it leaves is what a run on this machine leaves, whatever is killed meanwhile. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { canonicalJson } from "../../base/schema/ids.ts";
import { readRollouts, readTrajectories } from "../../rollouts/index.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { postgresFor } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, cliProcess, jsonOf, type RunningCli, startCli } from "../fakes/processes/cli.ts";
import { clusterAt } from "../fakes/processes/cluster-at.ts";
import { runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("run-at-service");
const cluster = postgresFor();
/** Starts of the command line and two dozen rollouts, on a machine with other work. */
const timeout = 300_000;

type Report = { run: string; rollouts: unknown[]; left_out: string[] };

/** A task that is whole without a folder. */
const inline = (task_id: string) => ({
  task_id,
  instruction: `Make done.txt for ${task_id}.`,
  limits: { agent_seconds: 30, grade_seconds: 20, memory_mb: 256, disk_mb: 64 },
  grader: { kind: "script", command: ["sh", "-c", `test -f done.txt && echo '{"reward": 0.5}' || echo '{"reward": 0}'`] },
});

/** A service that knows one task, and a folder of that one, of one that is sent, and of one that only this machine has. */
async function placeFor(t: TestContext, name: string, reply: (request: WireRequest) => ScriptedReply = solve) {
  const place = join(scratch, name);
  await mkdir(join(place, "tasks"), { recursive: true });
  const known = await writeTask(join(place, "tasks"), "known");
  const local = await writeTask(join(place, "tasks"), "local");
  await mkdir(join(place, "tasks", "sent"));
  await writeFile(join(place, "tasks", "sent", "task.yaml"), JSON.stringify(inline("sent")));
  const engine = await ScriptedEngine.start(reply);
  t.after(() => engine[Symbol.asyncDispose]());
  await writeFile(join(place, "run.yaml"), runFile({ engine: engine.url }));
  const start = async (): Promise<RunningCli> => {
    const running = startCli(["service", known, "-c", "run.yaml", "-p", "0", "--json", "--concurrency", "2"], { cwd: place });
    t.after(() => running[Symbol.asyncDispose]());
    await running.until(() => running.stdout.includes("\n"));
    return running;
  };
  return { place, tasks: join(place, "tasks"), known, local, engine, start };
}

/** What of a run's records does not depend on ids, times and the machine's load. */
async function told(path: string) {
  const trajectories = await readTrajectories(path);
  const records = await readRollouts(path);
  const all = trajectories.map(({ task, group, harness, reward, reward_components, stop_reason, in_loss, nodes, messages, fidelity }) => ({
    task,
    place: group.sample_index,
    size: group.size,
    harness: [harness.name, harness.version],
    reward,
    reward_components,
    stop_reason,
    in_loss,
    nodes: nodes.map(({ kind, token_ids, logprobs, trainable, reason }) => ({ kind, token_ids, logprobs, trainable, reason })),
    said: Object.values(messages).map((message) => JSON.stringify(message).replaceAll(/call[0-9a-z]{20}/g, "call")),
    fidelity,
  }));
  const verdicts = records.map(({ task_id, sample_index, attempt, state, exit_code, harness, verdict, summary, mask_reason, work }) => ({
    of: [task_id, sample_index, attempt, state, exit_code, harness, mask_reason, summary, work?.sha256],
    verdict: verdict && { ...verdict, evidence: { ...verdict.evidence, clock: null }, duration_ms: 0 },
  }));
  return [...all, ...verdicts].map(canonicalJson).sort();
}

test("its records are those of a run on this machine; a task is named, sent or left out by name; and every verb reads the folder", {
  timeout,
}, async (t) => {
  const at = await placeFor(t, "equal");
  const service = await at.start();
  const out = join(at.place, "mine");
  const asked = ["run", at.tasks, "--service", join(at.place, "runs/service"), "-o", out, "-n", "2"];
  const { code, stdout, stderr } = await cli([...asked, "--json"]);
  const { run, rollouts, left_out } = jsonOf<Report>({ code, stdout, stderr });
  assert.deepEqual([code, rollouts.length, left_out.length], [1, 4, 1], stderr);
  assert.match(
    left_out[0] ?? "",
    /task local cannot be sent, for its environment\.files is a folder of this machine, and the service has no task of this name/,
  );

  const here = jsonOf<Report>(
    await cliProcess(["run", at.known, join(at.tasks, "sent"), "-c", "run.yaml", "-o", join(at.place, "local"), "--json"], {
      cwd: at.place,
    }),
  );
  assert.deepEqual(await told(run), await told(here.run));

  const spoken = await cli([...asked.slice(0, 2), "--task", "known", ...asked.slice(2)]);
  assert.equal(spoken.code, 0, spoken.stderr);
  assert.match(spoken.stderr, /known\/0: done, reward 1 · [12] of 2 done/);
  const rollout = (await readRollouts(run))[0]?.rollout_id ?? "";
  for (const verb of [
    ["show", rollout],
    ["ls"],
    ["ls", "sessions"],
    ["stats"],
    ["fidelity"],
    ["export", "--format", "flat", "-o", join(at.place, "rows.jsonl")],
  ]) {
    const said = await cli([...verb, "--run", run]);
    assert.equal(said.code, 0, `${verb}: ${said.stderr}`);
  }
  const compared = await cli(["diff", "sent/1", "sent/1", "--run", run, "--other-run", here.run]);
  assert.equal(compared.code, 0, compared.stdout);
  assert.equal((await readFile(join(at.place, "rows.jsonl"), "utf8")).trim().split("\n").length, 4);
  assert.equal((await service.kill("SIGTERM")).code, 0);
});

test("killed with -9 while the service is killed too, it goes on from its cursor: no result is lost, and none is there twice", {
  timeout,
}, async (t) => {
  const at = await placeFor(t, "killed");
  let service = await at.start();
  const args = ["run", at.known, join(at.tasks, "sent"), "--service", "runs/service", "-o", "mine", "-n", "4", "--json"];
  const first = startCli(args, { cwd: at.place });
  t.after(() => first[Symbol.asyncDispose]());
  const out = join(at.place, "mine");
  const folder = async () => join(out, (await readdir(out))[0] ?? "");
  const written = async () => (await readFile(join(await folder(), "rollouts.jsonl"), "utf8").catch(() => "")).split("\n").length - 1;
  await first.until(async () => (await written().catch(() => 0)) >= 2);
  await first.kill("SIGKILL");
  await service.kill("SIGKILL");
  const run = await folder();
  const away = await cli(["run", "--resume", run]);
  assert.equal(away.code, 2);
  assert.match(away.stderr, /no service answers at /);

  service = await at.start();
  const second = startCli(["run", "--resume", run, "--json"], { cwd: at.place });
  t.after(() => second[Symbol.asyncDispose]());
  await second.until(async () => (await written()) >= 4);
  await service.kill("SIGKILL");
  service = await at.start();
  const ended = await second.ended;
  assert.equal(ended.code, 0, ended.stderr);
  const lines = (await readFile(join(run, "rollouts.jsonl"), "utf8")).trim().split("\n");
  const ids = lines.map((line) => (JSON.parse(line) as { rollout_id: string }).rollout_id);
  assert.deepEqual([ids.length, new Set(ids).size], [8, 8]);
  const trajectories = await readTrajectories(run);
  assert.deepEqual([trajectories.length, new Set(trajectories.map(({ rollout_id }) => rollout_id)).size], [8, 8]);
  const again = await cli(["run", "--resume", run, "--json"]);
  assert.deepEqual([again.code, jsonOf<Report>(again).rollouts.length, (await readTrajectories(run)).length], [0, 8, 8], again.stderr);
  await service.kill("SIGTERM");
});

test("nodes over Postgres make the rollouts of a run too", { timeout }, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const at = await clusterAt(t, join(scratch, "nodes"), await cluster());
  const node = await at.node("one");
  const place = join(at.place, "runs/service/service.json");
  const { code, stdout, stderr } = await cli([
    "run",
    join(at.place, "fix-slug"),
    "--service",
    place,
    "-o",
    join(at.place, "mine"),
    "-n",
    "3",
    "--json",
  ]);
  const { run } = jsonOf<Report>({ code, stdout, stderr });
  assert.equal(code, 0, stderr);
  const records = await readRollouts(run);
  assert.deepEqual(
    records
      .map(({ sample_index, verdict, work, sandbox }) => [sample_index, verdict?.reward, verdict?.status, work !== null, sandbox !== null])
      .sort(),
    [0, 1, 2].map((place) => [place, 1, "graded", true, true]),
  );
  for (const one of [node, at.service]) assert.equal((await one.kill("SIGTERM")).code, 0, one.stderr);
});
