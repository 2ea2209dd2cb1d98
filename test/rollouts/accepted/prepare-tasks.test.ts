/** One task whose sandbox cannot be is left out by name, and the others go on. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { type Environment, Task } from "../../../base/schema/task.ts";
import { oneAtATime, prepareTasks, tasksThatFit } from "../../../rollouts/index.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import type { SandboxBackend } from "../../../sandboxes/sandbox.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { runFile, solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("prepare-tasks");

function taskOf(task_id: string, environment: object = {}, memory_mb = 1): Task {
  const limits = { memory_mb, disk_mb: 1 };
  return Task.parse({ task_id, instruction: "i", environment, limits, grader: { kind: "script", command: ["true"] } });
}

const impossible = { user: "root" };

/** Has no image of this name. */
const lacking = {
  ...localProcess,
  images: {
    prepare: async (environments: Environment[]) =>
      environments.map(({ image }) =>
        image === "acme/none:1"
          ? { image: null, error: new AlidadeError("image_pull_failed", "there is no image acme/none:1") }
          : { image: "i", error: null, id: "i", repo_digest: null, bytes: 1 },
      ),
    list: async () => [],
    prune: async () => assert.fail("nothing is pruned"),
  },
} satisfies SandboxBackend;

async function prepared(tasks: Task[], backend: SandboxBackend = localProcess) {
  const errors: AlidadeError[] = [];
  const onLeftOut = (error: AlidadeError) => void errors.push(error);
  const signal = AbortSignal.timeout(10_000);
  const ready = await prepareTasks(tasks, backend, { run_id: "run-test-prepare", signal, onLeftOut });
  return { ready: ready.map(({ task_id }) => task_id), errors };
}

test("a task whose environment cannot be is left out with its name and field, and the others are ready", async () => {
  const { ready, errors } = await prepared([taskOf("a"), taskOf("b", impossible), taskOf("c")]);
  assert.deepEqual(ready, ["a", "c"]);
  assert.deepEqual(
    errors.map(({ code, param }) => [code, param]),
    [["task_invalid", "environment.user"]],
  );
  assert.match(errors[0]?.message ?? "", /^task b: environment\.user is root, and /);
});

test("a task of which an image cannot be had is left out with its name, also where it is a service's", async () => {
  const service = { services: { db: { image: "acme/none:1" } } };
  const { ready, errors } = await prepared([taskOf("a"), taskOf("b", { image: "acme/none:1" }), taskOf("c", service)], lacking);
  assert.deepEqual(ready, ["a"]);
  assert.deepEqual(
    errors.map(({ code, message }) => [code, message]),
    [
      ["image_pull_failed", "task b: there is no image acme/none:1"],
      ["image_pull_failed", "task c: there is no image acme/none:1"],
    ],
  );
  await assert.rejects(prepared([taskOf("b", { image: "acme/none:1" })], lacking), { code: "image_pull_failed" });
});

test("where no task is left the reasons of all are thrown as one", async () => {
  await assert.rejects(prepared([taskOf("a", impossible)]), { code: "task_invalid" });
  const both = prepared([taskOf("a", impossible), taskOf("b", impossible)]);
  await assert.rejects(both, {
    code: "task_invalid",
    message: /^no task is left of 2, .*\n {2}task a: environment\.user .*\n {2}task b: environment/,
  });
});

test("a task that is too large for the machine is left out, and the others fit", async () => {
  const errors: AlidadeError[] = [];
  const at = { backend: localProcess, room: { memory_mb: 1000, disk_mb: null } };
  const tasks = [taskOf("large", {}, 2000), taskOf("small", {}, 500)];
  const fitting = await tasksThatFit(tasks, oneAtATime, { ...at, overcommit: false, onLeftOut: (error) => void errors.push(error) });
  assert.deepEqual(
    fitting.map(({ task_id }) => task_id),
    ["small"],
  );
  assert.match(errors[0]?.message ?? "", /one sandbox of task large may take 2\.0 GiB of memory .* this machine has 1\.0 GiB/);
  assert.equal((await tasksThatFit(tasks, oneAtATime, { ...at, overcommit: true, onLeftOut: () => undefined })).length, 2);
});

test("a task that takes more than a chosen slot has is left out, and the others keep the chosen numbers", async () => {
  const fitting = async (sizes: number[], run: number, samples = 4) => {
    const said: string[] = [];
    const tasks = sizes.map((size, at) => taskOf(`task-${at}`, {}, size));
    const options = { backend: localProcess, room: { memory_mb: 1000, disk_mb: null }, overcommit: false };
    const wanted = { samples, concurrency: { init: 1, run, post: 1 } };
    const kept = await tasksThatFit(tasks, wanted, { ...options, onLeftOut: ({ message }) => void said.push(message) });
    return { kept: kept.map(({ task_id }) => task_id), said };
  };
  const one = await fitting([100, 500, 100], 4);
  assert.deepEqual(one.kept, ["task-0", "task-2"]);
  assert.match(
    one.said.join(),
    /^task task-1: concurrency\.run 4 and .* lower concurrency\.run to 1 .* or limits\.memory_mb \(500\) of task task-1,/,
  );
  assert.deepEqual(await fitting([100, 400, 100], 4, 1), { kept: ["task-0", "task-1", "task-2"], said: [] }, "they fit together");
  const most = await fitting([500, 500, 100], 4);
  assert.deepEqual([most.kept.length, most.said], [3, []], "where most are too large the number is at fault");
});

test("run and check go on without such tasks, name them, and end with 1", { timeout: 300_000 }, async () => {
  await using engine = await ScriptedEngine.start(solve);
  const names = ["good", "large", "rooted", "open"];
  const places = await Promise.all(
    names.map((id) => writeTask(scratch, id, "gold_files: files\n", id === "large" ? { memory_mb: 4_000_000 } : {})),
  );
  const change = async (place: string, from: string, to: string) => {
    const file = join(place, "task.yaml");
    await writeFile(file, (await readFile(file, "utf8")).replace(from, to));
  };
  await change(places[2] as string, "{ files: files }", "{ files: files, user: root }");
  await change(places[3] as string, "{ files: files }", "{ files: files, network: public }");
  const file = join(scratch, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["good", "large", "rooted", "open"] }));
  const ran = await cli(["run", "-c", file, "-n", "1", "-o", join(scratch, "runs"), "--json"]);
  const { rollouts, left_out } = jsonOf<{ rollouts: { task_id: string; verdict: { reward: number } }[]; left_out: string[] }>(ran);
  assert.deepEqual(
    rollouts.map(({ task_id, verdict }) => [task_id, verdict.reward]),
    [["good", 1]],
  );
  assert.deepEqual([ran.code, left_out.length], [1, 3]);
  const said =
    /environment\.network of the task open is public: [^\n]*\none sandbox of task large may take[^\n]*\ntask rooted: environment\.user/;
  assert.match(left_out.join("\n"), said);
  const checked = await cli(["check", ...places, "--times", "1", "--sandbox", "process", "--unsafe-host", "--json"]);
  const found = jsonOf<{ checks: { task_id: string }[]; left_out: string[] }>(checked);
  assert.deepEqual([checked.code, found.checks.map(({ task_id }) => task_id), found.left_out.length], [1, ["good"], 3]);
  await writeFile(file, runFile({ engine: engine.url, tasks: ["large", "open"] }));
  for (const verb of [
    ["run", "-c", file, "-n", "1", "-o", join(scratch, "runs")],
    ["check", ...places.slice(1), "--sandbox", "process", "--unsafe-host"],
  ]) {
    const { code, stderr } = await cli(verb);
    assert.equal(code, 2, stderr);
    assert.match(
      stderr,
      /no task is left of [23], for each has its reason:\n {2}environment\.network of the task open .*\n {2}one sandbox of task large/,
    );
  }
});
