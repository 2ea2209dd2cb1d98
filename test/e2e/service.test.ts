/** The trainer of docs/service.md against a real `alidade service`: both are killed with -9, and its rows are those of an undisturbed run. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { until } from "../fakes/machine/until.ts";
import { cli, type RunningCli, root, startCli } from "../fakes/processes/cli.ts";
import { runFile, solve, writeTask } from "../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("service-e2e");
/** Starts of the command line and a dozen rollouts, on a machine with other work. */
const timeout = 240_000;

type State = { cursor: string | null; step: number; rows: { token_ids: number[]; reward: number | null; group_id: string }[] };

async function placeFor(t: TestContext, name: string, reply: (request: WireRequest) => ScriptedReply = solve) {
  const place = join(scratch, name);
  await mkdir(place);
  await writeTask(place, "fix-slug");
  const engine = await ScriptedEngine.start(reply);
  t.after(() => engine[Symbol.asyncDispose]());
  await writeFile(join(place, "run.yaml"), runFile({ engine: engine.url, tasks: [join(place, "fix-slug")] }));
  const start = async (): Promise<RunningCli> => {
    const running = startCli(["service", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", "2"], { cwd: place });
    t.after(() => running[Symbol.asyncDispose]());
    await running.until(() => running.stdout.includes("\n"));
    return running;
  };
  const train = (script: string): ChildProcess => {
    const env = { ...process.env, PYTHONPATH: join(root, "clients/python"), PYTHONDONTWRITEBYTECODE: "1" };
    const trainer = spawn("python3", ["-c", script], { cwd: place, env, stdio: ["ignore", "inherit", "inherit"] });
    t.after(() => trainer.kill("SIGKILL"));
    return trainer;
  };
  const state = async (): Promise<State> => JSON.parse(await readFile(join(place, "checkpoint.json"), "utf8"));
  const step = (): Promise<number> =>
    state().then(
      (saved) => saved.step,
      () => 0,
    );
  return { place, engine, start, train, state, step };
}

/** The block of the page, with fewer groups, so that a test takes seconds. */
async function documented(groups: number): Promise<string> {
  const page = await readFile(join(root, "docs/service.md"), "utf8");
  const script = /```python\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  assert.match(script, /range\(20\)[\s\S]*== 10/);
  return script.replace("range(20)", `range(${groups})`).replace("== 10", "== 2");
}

const told = ({ rows }: State) => rows.map(({ token_ids, reward }) => JSON.stringify([token_ids, reward])).sort();

test("service and trainer are killed with -9 in the middle, and the rows are those of an undisturbed run", { timeout }, async (t) => {
  const script = await documented(4);
  const calm = await placeFor(t, "calm");
  const calmService = await calm.start();
  assert.deepEqual(await once(calm.train(script), "exit"), [0, null]);
  await calmService.kill("SIGTERM");

  const wild = await placeFor(t, "wild");
  let service = await wild.start();
  let trainer = wild.train(script);
  await until(() => wild.engine.requests.length >= 3);
  await service.kill("SIGKILL");
  service = await wild.start();
  await until(async () => (await wild.step()) >= 1);
  trainer.kill("SIGKILL");
  await once(trainer, "exit");
  const asked = wild.engine.requests.length;
  trainer = wild.train(script);
  await until(async () => wild.engine.requests.length > asked || (await wild.step()) === 4);
  await service.kill("SIGKILL");
  service = await wild.start();
  if (trainer.exitCode === null) await once(trainer, "exit");
  assert.equal(trainer.exitCode, 0);

  const [undisturbed, disturbed] = [await calm.state(), await wild.state()];
  assert.deepEqual([undisturbed.step, undisturbed.rows.length], [4, 8]);
  assert.deepEqual(told(disturbed), told(undisturbed));
  assert.equal(disturbed.step, 4);
  assert.equal((await service.kill("SIGTERM")).code, 0);
});

test("what a stop interrupts runs again and counts as no failure, a task may come as a value, and a drained set ends", {
  timeout,
}, async (t) => {
  const forever = new Promise<never>(() => undefined);
  const at = await placeFor(t, "stopped", (request) => ({
    ...solve(request),
    ...(at.engine.requests.length <= 2 && { beforeEnd: forever }),
  }));
  const inline = `{"task_id": "own", "instruction": "Make done.txt.", "grader": {"kind": "script", "command": ["sh", "-c", "echo '{\\\\"reward\\\\": 0.5}'"]}}`;
  let service = await at.start();
  const trainer = at.train(`
import json
from alidade import Service, ServiceError
service = Service()
run = service.set("s", samples=1)
run.submit([("a", "fix-slug"), ("b", json.loads('''${inline}'''))])
rows = list(zip("ab", run.groups()))
assert [group.rewards for _, group in rows] in ([[1], [0.5]], [[0.5], [1]]), [group.rewards for _, group in rows]
assert all(group.results[0]["attempt"] == 2 for _, group in rows)
try:
    service.set("s", samples=2)
except ServiceError as error:
    assert (error.status, error.param) == (409, "key")
run.drain()
with open("checkpoint.json", "w") as file:
    json.dump({"cursor": rows[-1][1].cursor, "step": 9, "rows": []}, file)
assert list(run.groups(after=rows[-1][1].cursor)) == []
`);
  await until(() => at.engine.requests.length === 2);
  assert.equal((await service.kill("SIGTERM")).code, 0);
  service = await at.start();
  assert.deepEqual(await once(trainer, "exit"), [0, null], service.stderr);
  assert.equal((await service.kill("SIGTERM")).code, 0);
});

test("beyond loopback the service wants a token of the operator's", async () => {
  const { code, stderr } = await cli(["service", "--engine", "http://127.0.0.1:1", "--host", "0.0.0.0"]);
  assert.equal(code, 2);
  assert.match(stderr, /--host is 0\.0\.0\.0: .*ALIDADE_SERVICE_TOKEN/);
});
