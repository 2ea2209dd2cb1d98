/** The trainer of docs/service.md against a real `alidade service`: both are killed with -9, and its rows are those of an undisturbed run. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ServiceClient } from "../../service/index.ts";
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

test("a service of one process cuts stragglers, and cancels a set to its last rollout", { timeout }, async (t) => {
  const forever = new Promise<never>(() => undefined);
  let begun = 0;
  const isFirst = ({ tools, messages }: WireRequest) => tools !== undefined && messages.every(({ role }) => role !== "assistant");
  const at = await placeFor(t, "ends", (request) => ({ ...solve(request), ...(isFirst(request) && ++begun > 1 && { before: forever }) }));
  const service = await at.start();
  await using client = ServiceClient.of(join(at.place, "runs", "service"));
  const cut = await client.set("cut", { samples: 2, straggler_cut: { share: 0.5, seconds: 1 } });
  await cut.submit([{ group_key: "g", task: "fix-slug" }]);
  await until(async () => (await cut.state()).groups.whole === 1, { ms: 60_000, said: async () => service.stderr });
  const { completed, cancelled } = (await cut.state()).rollouts;
  assert.deepEqual([completed, cancelled], [1, 1]);

  const many = await client.set("many", { samples: 700 });
  await many.submit([{ group_key: "g", task: "fix-slug" }]);
  assert.equal(await many.cancel(), 700);
  await until(async () => (await many.state()).rollouts.cancelled === 700, { said: async () => JSON.stringify(await many.state()) });
  assert.equal((await service.kill("SIGTERM")).code, 0);
});

/** A trainer as far as `rollout_func` looks at it: TRL's own is asked in train-online.test.ts. */
const stubTrainer = `
import json, sys
from types import SimpleNamespace
from alidade import Service
from alidade.trl import Rollouts

loaded, accelerator = [], SimpleNamespace(num_processes=1, process_index=0, is_main_process=True, wait_for_everyone=lambda: None)
def trainer(step, **more):
    given = dict(temperature=1.0, num_generations=2, model=SimpleNamespace(training=True), processing_class=SimpleNamespace(pad_token_id=0))
    return SimpleNamespace(state=SimpleNamespace(global_step=step), accelerator=accelerator, **{**given, **more})
def rollouts_of(samples=2, key="trl"):
    run = Service().set(key, samples=samples, retries=0)
    return Rollouts(run, lambda trainer, version: loaded.append([version, Service().health()["status"]]), task=TASKS.get)
half = "grep -q 1 done.txt && echo '{\\"reward\\": 1}'"
task = lambda name, command: {"task_id": name, "instruction": name, "grader": {"kind": "script", "command": ["sh", "-c", command]}}
TASKS = {"good": "fix-slug", "half": task("half", half), "none": task("none", "exit 1")}
def told(out):
    text = lambda ids: "".join(map(chr, ids))
    rows = zip(out["prompt_ids"], out["completion_ids"], out["logprobs"], out["env_mask"], out["alidade_reward"])
    return [{"prompt": text(p), "said": text(c), "lengths": [len(c), len(l), len(m)], "trained": sum(m), "reward": r} for p, c, l, m, r in rows]
def refusal(work):
    try: work()
    except ValueError as error: return str(error)
`;

test("rollout_func gives TRL its rows in the order of the prompts, and what failed is masked throughout", { timeout }, async (t) => {
  let halves = 0;
  const reply = (request: WireRequest): ScriptedReply => {
    const isFirst = request.messages.every(({ role }) => role !== "assistant");
    const isHalf = isFirst && JSON.stringify(request.messages).includes('"half"');
    const command = isHalf ? `echo ${halves++ % 2} > done.txt` : "echo yes > done.txt";
    return isFirst ? { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] } : { text: "done" };
  };
  const at = await placeFor(t, "trl", reply);
  const service = await at.start();
  const python = async (script: string) => {
    const trainer = at.train(stubTrainer + script);
    assert.deepEqual(await once(trainer, "exit"), [0, null], service.stderr);
    return JSON.parse(await readFile(join(at.place, "out.json"), "utf8"));
  };
  const first = await python(`
rollouts = rollouts_of()
out = rollouts.rollout_func(["none", "none", "good", "good", "half", "half"], trainer(0))
rollouts.save(".")
again = rollouts.rollout_func(["good", "good"], trainer(0))
later = rollouts.rollout_func(["half", "half"], trainer(3))
refused = [refusal(lambda: rollouts.rollout_func(["good", "good"], trainer(4, model=SimpleNamespace(training=False)))),
    refusal(lambda: rollouts.rollout_func(["good", "good"], trainer(4, temperature=0.7))),
    refusal(lambda: rollouts.rollout_func(["good", "half"], trainer(4))),
    refusal(lambda: rollouts_of(1, "other").rollout_func(["good", "good"], trainer(4)))]
policies = [out["alidade_policies"], again["alidade_policies"], later["alidade_policies"]]
json.dump({"out": told(out), "later": later, "loaded": loaded, "refused": refused, "policies": policies}, open("out.json", "w"))
`);
  const [none, , good, good2, ...half] = first.out;
  assert.deepEqual([none.trained, none.reward, none.lengths], [0, null, [1, 1, 1]]);
  for (const row of [good, good2]) {
    assert.match(row.prompt, /fix-slug/);
    assert.ok(row.reward === 1 && row.trained > 0 && new Set(row.lengths).size === 1, JSON.stringify(row));
  }
  assert.deepEqual(half.map(({ reward }: { reward: number | null }) => reward).sort(), [1, null]);
  for (const row of half) assert.equal(row.trained > 0, row.reward === 1, "a rollout that was not measured is masked");
  const [zero, three] = [["step-0"], ["step-3"]];
  assert.deepEqual(first.policies.slice(1), [
    [zero, zero],
    [three, three],
  ]);
  assert.deepEqual(
    first.loaded,
    [
      ["step-0", "paused"],
      ["step-3", "paused"],
    ],
    "once a step, behind the gate",
  );
  for (const [at, words] of [/evaluate/, /temperature/, /not one prompt 2 times/, /samples=1 .*num_generations=2/].entries())
    assert.match(first.refused[at] ?? "", words);

  const asked = at.engine.requests.length;
  const second = await python(`
rollouts = rollouts_of()
rollouts.restore(".")
later = rollouts.rollout_func(["half", "half"], trainer(3))
json.dump({"later": later, "loaded": loaded, "state": Service().set("trl", samples=2, retries=0).state()["rollouts"]}, open("out.json", "w"))
`);
  assert.equal(at.engine.requests.length, asked, "what an earlier life asked for is not sampled again");
  assert.deepEqual(second.later, first.later);
  assert.deepEqual(second.loaded, [["step-3", "paused"]]);
  assert.deepEqual([second.state.queued, second.state.running, second.state.completed + second.state.failed], [0, 0, 10]);
});

test("beyond loopback the service wants a token of the operator's", async () => {
  const { code, stderr } = await cli(["service", "--engine", "http://127.0.0.1:1", "--host", "0.0.0.0"]);
  assert.equal(code, 2);
  assert.match(stderr, /--host is 0\.0\.0\.0: .*ALIDADE_SERVICE_TOKEN/);
});

test("a bridge of Polar's gets the tokens that the practice engine sampled, by its callback and by polling", { timeout }, async (t) => {
  const place = join(scratch, "polar");
  await mkdir(place);
  await writeTask(place, "fix-slug");
  await writeFile(join(place, "run.yaml"), runFile({ engine: "practice", tasks: [join(place, "fix-slug")] }));
  const service = startCli(["service", "-c", "run.yaml", "-p", "0", "--json", "--polar", "--allow-private-webhook"], { cwd: place });
  t.after(() => service[Symbol.asyncDispose]());
  await service.until(() => service.stdout.includes("\n"));
  const { url, token } = JSON.parse(await readFile(join(place, JSON.parse(service.stdout).token_file), "utf8"));
  let told = "";
  const bridge = createServer(async (asked, response) => {
    told = Buffer.concat(await asked.toArray()).toString("utf8");
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await once(bridge, "listening");
  t.after(() => bridge.close());
  const authorization = `Basic ${Buffer.from(`bridge:${token}`).toString("base64")}`;
  const ask = async (method: string, path: string, body?: object) =>
    (await fetch(url + path, { method, headers: { authorization }, ...(body && { body: JSON.stringify(body) }) })).json();
  const task = {
    task_id: "rollout 0/0",
    instruction: "Say something.",
    num_samples: 2,
    agent: { model_name: "openai/any" },
    builder: { strategy: "prefix_merging" },
    callback_url: `http://127.0.0.1:${(bridge.address() as AddressInfo).port}/callback/task_result`,
    metadata: { alidade_task: "fix-slug", rollout_step: 0 },
  };
  assert.deepEqual(await ask("POST", "/rollout/task/submit", task), { task_id: task.task_id, status: "running" });
  await service.until(() => told !== "");
  const polled = await ask("GET", `/rollout/task/${encodeURIComponent(task.task_id)}`);
  assert.deepEqual(polled, JSON.parse(told));
  assert.deepEqual([polled.status, polled.total_sessions, polled.completed_sessions], ["completed", 2, 2], service.stderr);
  for (const { status, error, trajectory, metadata } of polled.results) {
    assert.deepEqual([status, error, metadata.rollout_step], ["COMPLETED", null, 0]);
    const [trace] = trajectory.traces;
    const trained = trace.loss_mask.reduce((sum: number, each: number) => sum + each, 0);
    assert.ok(trained > 0 && trace.prompt_ids.length > 0 && trace.reward === 0, JSON.stringify(trace).slice(0, 500));
    for (const [at, logprob] of trace.response_logprobs.entries()) assert.equal(logprob < 0, trace.loss_mask[at] === 1);
    assert.match(JSON.stringify(trace.prompt_messages), /Say something/, "the bridge's own instruction");
  }
});
