/** `alidade regrade`: works that a run kept are graded again by the task as it is now, and the last verdict counts. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { currentOwner } from "../../../base/host/owner.ts";
import { RolloutRecord } from "../../../base/schema/rollout.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { regrade } from "../../../rollouts/regrade.ts";
import { plainRules } from "../../../sandboxes/network/open-network.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { linesOf } from "../../fakes/records/lines-of.ts";
import { runFile, solve, writeTask } from "../../fakes/rollouts/small-task.ts";
import { reader } from "../../graders/judge/scripted-judge.ts";

const scratch = scratchFolder("regrade");

type Said = {
  regraded: {
    task_id: string;
    sample_index: number;
    before: number | null;
    after: number | null;
    changed: boolean;
    revision: number;
    task_changed: boolean;
  }[];
  not_regraded: { task_id: string; sample_index: number; reason: string }[];
};

/** Two tasks of two rollouts, all with the reward 1; the engine is gone afterwards. */
async function ranTwo(name: string): Promise<{ folder: string; path: string }> {
  const folder = join(scratch, name);
  await mkdir(folder);
  for (const id of ["a", "b"]) await writeTask(folder, id);
  await using engine = await ScriptedEngine.start(solve);
  await writeFile(join(folder, "run.yaml"), runFile({ engine: engine.url, tasks: ["a", "b"] }));
  const result = await cli(["run", "-c", join(folder, "run.yaml"), "-o", join(folder, "runs"), "--json"]);
  assert.equal(result.code, 0, result.stderr);
  return { folder, path: jsonOf<{ run: string }>(result).run };
}

/** The task's grader wants something else from now on. */
async function changeGrader(folder: string, id: string, command: string): Promise<void> {
  const file = join(folder, id, "task.yaml");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace(/command: .*/, `command: [sh, -c, ${JSON.stringify(command)}]`));
}

const trajectoriesOf = (path: string) => linesOf(join(path, "trajectories.jsonl"), Trajectory);
const rewardsOf = async (path: string) => (await trajectoriesOf(path)).map(({ task, reward }) => `${task.id} ${reward}`).sort();

test("a changed grader gives new rewards without a model, as a new revision that counts everywhere", async () => {
  const { folder, path } = await ranTwo("changed");
  const before = await trajectoriesOf(path);
  await changeGrader(folder, "b", `echo '{"reward":0.25,"components":{"half":0.5}}'`);
  const result = await cli(["regrade", path, "--json"]);
  assert.equal(result.code, 0, result.stderr);
  const { regraded, not_regraded } = jsonOf<Said>(result);
  assert.deepEqual(regraded.map((one) => [one.task_id, one.before, one.after, one.changed, one.revision, one.task_changed]).sort(), [
    ["a", 1, 1, false, 2, false],
    ["a", 1, 1, false, 2, false],
    ["b", 1, 0.25, true, 2, true],
    ["b", 1, 0.25, true, 2, true],
  ]);
  assert.deepEqual(not_regraded, []);
  assert.deepEqual(await rewardsOf(path), ["a 1", "a 1", "b 0.25", "b 0.25"]);
  const after = await trajectoriesOf(path);
  const without = (one: Trajectory) => ({ ...one, reward: null, reward_components: [] });
  assert.deepEqual(after.map(without), before.map(without), "nothing else of a trajectory changes");
  const records = await linesOf(join(path, "rollouts.jsonl"), RolloutRecord);
  const ofB = records.filter(({ task_id, state, sample_index }) => task_id === "b" && state === "done" && sample_index === 0);
  assert.deepEqual(
    ofB.map(({ revision, verdict }) => [revision, verdict?.reward]),
    [
      [1, 1],
      [2, 0.25],
    ],
  );
  const listed = jsonOf<{ rollouts: { reward: number }[] }>(await cli(["ls", "rollouts", "--run", path, "--task", "b", "--json"]));
  assert.deepEqual(
    listed.rollouts.map(({ reward }) => reward),
    [0.25, 0.25],
  );
  assert.ok(!(await readdir(path)).includes("regrade.jsonl"));
  const again = await cli(["regrade", path, "b/1"]);
  assert.match(again.stdout, /b\/1 +0\.25 +0\.25 +3/);
  assert.match(again.stdout, /0 of 1 rewards changed/);
});

test("a rollout without its work is named with the reason, and the others are graded", async () => {
  const { folder, path } = await ranTwo("lost");
  await changeGrader(folder, "a", `test -f done.txt && echo '{"reward":0.5}'`);
  const [record] = (await linesOf(join(path, "rollouts.jsonl"), RolloutRecord)).filter(({ task_id, work }) => task_id === "a" && work);
  await rm(join(path, "blobs", `${record?.work?.sha256}.tar.gz`));
  const result = await cli(["regrade", path, "--task", "a", "--json"]);
  assert.equal(result.code, 1);
  assert.match(jsonOf<Said>(result).not_regraded[0]?.reason ?? "", /there is no .*\.tar\.gz/);
  assert.deepEqual(await rewardsOf(path), ["a 1", "a 1", "b 1", "b 1"]);
  await rm(join(folder, "b"), { recursive: true });
  assert.deepEqual((await cli(["regrade", path, "c/0"])).code, 2);
  assert.match((await cli(["regrade", path, "c/0"])).stderr, /holds no rollout "c\/0"/);
});

test("a damaged work is no work, and grades nothing", async () => {
  const { path } = await ranTwo("damaged");
  for (const name of await readdir(join(path, "blobs"))) {
    const file = join(path, "blobs", name);
    const bytes = await readFile(file);
    await writeFile(file, bytes.subarray(0, bytes.length - 20));
  }
  const result = await cli(["regrade", path, "--json"]);
  assert.equal(result.code, 1);
  assert.deepEqual([...new Set(jsonOf<Said>(result).not_regraded.map(({ reason }) => /is damaged$/.test(reason)))], [true]);
});

test("a grading that is broken off leaves the rewards as they were, and goes on where it ended", async () => {
  const { folder, path } = await ranTwo("broken-off");
  const counter = join(folder, "graded");
  for (const id of ["a", "b"]) await changeGrader(folder, id, `echo x >> ${counter}; echo '{"reward":0}'`);
  const tasks = (await Promise.all(["a", "b"].map((id) => loadTasks(join(folder, id))))).flat();
  const stop = new AbortController();
  const setup = {
    path,
    run_id: "regrade",
    owner: await currentOwner(),
    rules: plainRules(),
    tasks: new Map(tasks.map((task) => [task.task_id, task])),
    backend: localProcess,
    openSampler: "none is asked",
    atOnce: 1,
    isWanted: () => true,
    onGraded: () => stop.abort(),
    onDamage: () => assert.fail("no line is damaged"),
  };
  await assert.rejects(regrade(setup, stop.signal));
  assert.deepEqual(await rewardsOf(path), ["a 1", "a 1", "b 1", "b 1"]);
  const { regraded } = await regrade({ ...setup, onGraded: () => undefined }, AbortSignal.timeout(60_000));
  assert.deepEqual(
    regraded.map(({ after, revision }) => [after, revision]),
    [
      [0, 2],
      [0, 2],
      [0, 2],
      [0, 2],
    ],
  );
  assert.deepEqual(await rewardsOf(path), ["a 0", "a 0", "b 0", "b 0"]);
  assert.equal((await readFile(counter, "utf8")).length, 2 * 4, "each work is graded once");
});

test("works are judged again by a model that --engine names, in sessions that are recorded and never trained", async () => {
  const { folder, path } = await ranTwo("judged");
  const file = join(folder, "b", "task.yaml");
  const [head] = (await readFile(file, "utf8")).split("grader:");
  await writeFile(file, `${head}grader: { kind: judge, sees: [files], rubric: [{ name: a, says: "The work contains the word yes." }] }\n`);
  const away = jsonOf<Said>(await cli(["regrade", path, "--json"]));
  assert.deepEqual(
    away.regraded.map(({ task_id }) => task_id),
    ["a", "a"],
  );
  for (const { reason } of away.not_regraded) assert.match(reason, /^its grader judge asks a model, and .*--engine names another one/);
  const logs = new Set(await readdir(join(path, "sessions")));
  await using engine = await ScriptedEngine.start(reader);
  const result = await cli(["regrade", path, "--task", "b", "--engine", engine.url, "--json"]);
  assert.deepEqual(
    [result.code, jsonOf<Said>(result).regraded.map(({ after, revision }) => [after, revision])],
    [
      0,
      [
        [1, 2],
        [1, 2],
      ],
    ],
    result.stderr,
  );
  const asked = (await readdir(join(path, "sessions"))).filter((name) => !logs.has(name));
  const specs = await Promise.all(
    asked.map(async (name) => JSON.parse((await readFile(join(path, "sessions", name), "utf8")).split("\n")[0] ?? "").spec),
  );
  assert.deepEqual(
    specs.map(({ purpose, task_id }) => [purpose, task_id]),
    [
      ["judge", "b"],
      ["judge", "b"],
    ],
  );
});

test("a work that was graded in the agent's own sandbox is graded again on request only, in a fresh one", async () => {
  const folder = join(scratch, "shared");
  await mkdir(folder);
  await writeTask(folder, "a");
  // HOME does not cross to a fresh sandbox.
  await changeGrader(folder, "a", 'test -f "$HOME/left" && echo \'{"reward":1}\' || echo \'{"reward":0}\'');
  await using engine = await ScriptedEngine.start((request) => {
    const said = solve(request);
    return said.tool_calls ? { tool_calls: [{ name: "bash", arguments: '{"command":"touch $HOME/left"}' }] } : said;
  });
  await writeFile(join(folder, "run.yaml"), runFile({ engine: engine.url, tasks: ["a"] }));
  const place = ["run", "-c", join(folder, "run.yaml"), "-n", "1", "-o", join(folder, "runs")];
  const refused = await cli([...place, "--grading", "shared", "--min-tier", "T1"]);
  assert.match(refused.stderr, /min_tier is T1, and the task a is graded below it/);
  const result = await cli([...place, "--grading", "shared"]);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stderr, /GRADED IN THE AGENT'S OWN SANDBOX \(grading: shared\): 1 of 1 tasks\. [^\n]*tier T0[^\n]*\n/);
  const [run] = await readdir(join(folder, "runs"));
  const path = join(folder, "runs", run ?? "");
  assert.deepEqual(await rewardsOf(path), ["a 1"]);
  const left = await cli(["regrade", path, "--json"]);
  assert.equal(left.code, 1);
  assert.match(jsonOf<Said>(left).not_regraded[0]?.reason ?? "", /agent's own sandbox, which is not kept: --grading fresh/);
  const fresh = jsonOf<Said>(await cli(["regrade", path, "--grading", "fresh", "--json"]));
  assert.deepEqual(
    fresh.regraded.map(({ before, after, task_changed }) => [before, after, task_changed]),
    [[1, 0, true]],
  );
});
