/** The sum of what all slots may take is held against the machine before a run begins. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Task } from "../../base/schema/task.ts";
import { fitMachine } from "../../rollouts/index.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { ScriptedEngine } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("fit-machine");
const gibibyte = 1024;
const [docker, localProcess] = backends;

const taskOf = (memory_mb: number, disk_mb: number): Task =>
  Task.parse({
    task_id: `of-${memory_mb}-${disk_mb}`,
    instruction: "go",
    limits: { memory_mb, disk_mb },
    grader: { kind: "script", command: ["true"] },
  });

/** Where memory and disk are counted as they are stated. */
const plain: Pick<SandboxBackend, "takes"> = localProcess;
const roomOf = (memory: number, disk: number | null = null) => ({ memory_mb: memory, disk_mb: disk });
const fit = (
  task: Task,
  wanted: { run?: number; post?: number; warm?: number },
  room: { memory_mb: number | null; disk_mb: number | null },
  backend = plain,
) => fitMachine([task], 8, { init: 2, ...wanted }, backend, room, false);

test("slots that may take more memory than the machine has are refused, with the numbers, the fields and what to do", () => {
  assert.throws(() => fit(taskOf(1024, 1), { run: 8, post: 2 }, roomOf(4 * gibibyte)), {
    code: "config_invalid",
    param: "concurrency.run",
    message:
      "concurrency.run 8 and concurrency.post 2 let sandboxes take 10.0 GiB of memory, and this machine has 4.0 GiB for sandboxes: lower concurrency.run to 3 and concurrency.post to 1, or limits.memory_mb (1024) of task of-1024-1, or set overcommit (--overcommit) where you know better",
  });
  assert.equal(fitMachine([taskOf(1024, 1)], 8, { init: 2, run: 8 }, plain, roomOf(4 * gibibyte), true).concurrency.run, 8);
});

test("a sandbox in Docker takes its memory and its disk, and a grader's twice of the disk", () => {
  assert.deepEqual(docker.takes(taskOf(1024, 1000).limits), { memory_mb: 1024, disk_mb: 1000 });
  const one = { run: 1, post: 1 };
  assert.equal(fit(taskOf(1024, 1000), one, { memory_mb: 2048, disk_mb: 3000 }, docker).concurrency.ahead, 0);
  const short = { memory_mb: 9000, disk_mb: 2999 };
  assert.throws(() => fit(taskOf(1024, 1000), { run: 2, post: 1 }, short, docker), /limits\.disk_mb \(1000\) of task/);
});

test("services count beside each sandbox, the agent's and the grader's", () => {
  const services = { db: { image: "i", memory_mb: 1024, disk_mb: 512 }, cache: { image: "i", memory_mb: 512, disk_mb: 512 } };
  const alone = taskOf(512, 1024);
  const task = Task.parse({ ...alone, environment: { services } });
  assert.deepEqual(docker.takes(task.limits, task.environment.services), { memory_mb: 2048, disk_mb: 2048 });
  const room = { memory_mb: 4095, disk_mb: null };
  assert.equal(fit(alone, { run: 1, post: 1 }, room, docker).concurrency.run, 1);
  assert.throws(() => fit(task, { run: 1, post: 1, warm: 1 }, room, docker), { param: "concurrency.run" });
});

test("the disk of process sandboxes is held against the space that is free", () => {
  assert.throws(() => fit(taskOf(1, 1024), { run: 4, post: 1 }, roomOf(64 * gibibyte, 5 * gibibyte)), {
    param: "concurrency.run",
    message: /take 6\.0 GiB of disk, and this machine has 5\.0 GiB .*limits\.disk_mb \(1024\)/,
  });
});

test("what the user did not choose is lowered until it fits, down to one sandbox at a time, and the note says so", () => {
  const task = taskOf(1024, 1);
  const slots = (memory: number) => {
    const { concurrency, note } = fit(task, {}, roomOf(memory * gibibyte));
    return [concurrency.rollouts === 1, concurrency.run, concurrency.post, concurrency.ahead, note !== null];
  };
  assert.deepEqual(slots(7), [false, 4, 2, 1, false]);
  assert.deepEqual(slots(6), [false, 4, 2, 0, false]);
  assert.deepEqual(slots(5), [false, 4, 1, 0, true]);
  assert.deepEqual(slots(4), [false, 3, 1, 0, true]);
  assert.deepEqual(slots(2), [false, 1, 1, 0, true]);
  assert.deepEqual(slots(1), [true, 1, 1, 0, true]);
  assert.match(fit(task, {}, roomOf(4 * gibibyte)).note ?? "", /4 harnesses and 2 gradings at once may take 7\.0 GiB .* has 4\.0 GiB/);
  assert.throws(() => fit(task, {}, roomOf(1000)), {
    param: "limits.memory_mb",
    message: /one sandbox of task of-1024-1 may take 1\.0 GiB of memory while it is graded, and this machine has 1\.0 GiB/,
  });
});

test("sandboxes that are kept warm count like those in use, are never lowered, and are named where they do not fit", () => {
  const task = taskOf(1024, 1);
  assert.equal(fit(task, { warm: 2 }, roomOf(8 * gibibyte)).concurrency.ahead, 0);
  assert.equal(fit(task, { warm: 2 }, roomOf(4 * gibibyte)).concurrency.run, 1);
  assert.throws(() => fit(task, { warm: 3 }, roomOf(4 * gibibyte)), {
    message:
      /concurrency\.run 1, warm\.sandboxes 3 and concurrency\.post 1 let .* take 5\.0 GiB .*: lower warm\.sandboxes, or limits\.memory_mb/,
  });
});

test("a machine that tells nothing refuses nothing, and no more sandboxes are counted than there are rollouts", () => {
  assert.equal(fit(taskOf(1024, 1), { run: 1000 }, { memory_mb: null, disk_mb: null }).concurrency.run, 1000);
  assert.equal(fitMachine([taskOf(1024, 1)], 1, { init: 2, run: 1000 }, plain, roomOf(2 * gibibyte), false).concurrency.run, 1000);
});

test("the demo runs on a machine with 4 GB, in Docker and without", async () => {
  const tasks = (await Promise.all(["merge-ranges", "parse-duration"].map((name) => loadTasks(`examples/demo/tasks/${name}`)))).flat();
  for (const backend of backends)
    assert.ok(fitMachine(tasks, 4, { init: 2 }, backend, roomOf(3800, 4 * gibibyte), false).concurrency.run > 0);
});

for (const { name } of backends)
  test(`${name}: run and check refuse what this machine cannot hold before they make a sandbox; --overcommit runs it`, async (t) => {
    if (name === "docker" && !(await need(t, "docker"))) return;
    await using engine = await ScriptedEngine.start(solve);
    const folder = join(scratch, name);
    const place = await writeTask(folder, "greedy", "gold_files: files\n", { memory_mb: 4_000_000 });
    const file = join(folder, "run.yaml");
    await writeFile(file, runFile({ engine: engine.url, tasks: ["greedy"] }).replace("sandbox: process", `sandbox: ${name}`));
    const argv = ["run", "-c", file, "-n", "1", "-o", join(folder, "runs"), "--json"];
    for (const refused of [await cli(argv), await cli(["check", place, "--sandbox", name, "--unsafe-host", "--json"])]) {
      assert.equal(refused.code, 2, refused.stderr);
      const { error } = jsonOf<{ error: { code: string; message: string; param: string } }>(refused);
      assert.deepEqual([error.code, error.param], ["config_invalid", "limits.memory_mb"]);
      assert.match(error.message, /one sandbox of task greedy may take 390\d\.\d GiB of memory .* this machine has [\d.]+ GiB/);
    }
    if (name === "docker") return;
    const ran = await cli([...argv, "--overcommit"]);
    assert.equal(ran.code, 0, ran.stderr);
  });

test("a run whose machine holds one sandbox at a time makes them one after the other, and is done", async () => {
  await using engine = await ScriptedEngine.start(solve);
  const folder = join(scratch, "one");
  // More than half of the machine, so that no two fit beside each other.
  const { memory_mb } = await localProcess.room(AbortSignal.timeout(10_000));
  await writeTask(folder, "large", "", { memory_mb: Math.floor(0.6 * (memory_mb ?? 0)) });
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["large"] }));
  const ran = await cli(["run", "-c", file, "-n", "3", "-o", join(folder, "runs")]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /one sandbox is there at a time; lower limits\.memory_mb/);
  const states = [...ran.stderr.matchAll(/large\/\d+: (init|run|post)$/gm)].map(([, state]) => state);
  assert.deepEqual(states, ["init", "run", "post", "init", "run", "post", "init", "run", "post"]);
});
