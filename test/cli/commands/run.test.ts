/** `alidade run` with one's own harness in the process sandbox: what it leaves, how it goes on, and what bad input does. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RolloutRecord } from "../../../base/schema/rollout.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import type { AttemptTally } from "../../../base/statistics/attempt-tally.ts";
import { canaryText } from "../../../proxy/pool/canary.ts";
import { samePlace } from "../../../sandboxes/process/same-place.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, cliProcess, jsonOf, type RunningCli, startCli } from "../../fakes/processes/cli.ts";
import { linesOf } from "../../fakes/records/lines-of.ts";
import { chatHarness, runFile, setUnrepeatable, solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("run");
let folders = 0;

type Ran = { run: string; rollouts: RolloutRecord[] };

async function fresh(): Promise<string> {
  const folder = join(scratch, `${folders++}`);
  await mkdir(folder);
  return folder;
}

/** Writes a run file and runs it to its end. */
async function run(
  engine: ScriptedEngine | string,
  options: { command?: string[]; tasks?: string[]; more?: string; flags?: string[]; by?: typeof cliProcess },
) {
  const folder = await fresh();
  for (const id of options.tasks ?? ["small"]) await writeTask(folder, id);
  const file = join(folder, "run.yaml");
  const url = typeof engine === "string" ? engine : engine.url;
  await writeFile(file, runFile({ engine: url, tasks: options.tasks ?? ["small"], command: options.command, more: options.more }));
  const result = await (options.by ?? cli)(["run", "-c", file, "-o", join(folder, "runs"), "--json", ...(options.flags ?? [])]);
  return { folder, file, result };
}

test("a run file with one's own tasks and harness leaves rollouts, sessions and trajectories that can be shown and exported", async () => {
  // The second sample of each task is told to do nothing.
  await using engine = await ScriptedEngine.start((request) =>
    JSON.stringify(request.messages).includes("small-b") ? { text: "I would rather not" } : solve(request),
  );
  const { result } = await run(engine, { tasks: ["small-a", "small-b"] });
  assert.equal(result.code, 0, result.stderr);
  const { run: path, rollouts } = jsonOf<Ran>(result);
  assert.deepEqual(
    rollouts.map((one) => [one.task_id, one.sample_index, one.attempt, one.state, one.stop_reason, one.verdict?.reward]),
    [
      ["small-a", 0, 1, "done", "exited", 1],
      ["small-a", 1, 1, "done", "exited", 1],
      ["small-b", 0, 1, "done", "exited", 0],
      ["small-b", 1, 1, "done", "exited", 0],
    ],
  );
  assert.deepEqual([rollouts[0]?.verdict?.isolation, rollouts[0]?.sandbox?.backend], ["none", "process"]);
  const trajectories = await linesOf(join(path, "trajectories.jsonl"), Trajectory);
  assert.equal(trajectories.length, 4);
  for (const one of trajectories) {
    assert.deepEqual([one.status, one.in_loss, one.purpose], ["graded", true, "train"]);
    assert.ok(one.calls.every((call) => call.outcome === "delivered" && ["root", "exact"].includes(call.match)));
    assert.equal(one.fidelity.trainable_tokens, one.fidelity.sampled_tokens);
  }

  const shown = await cli(["show", "small-a/1", "--run", path]);
  assert.equal(shown.code, 0);
  assert.match(shown.stdout, /echo yes > done\.txt/);
  const page = join(path, "page.html");
  assert.equal((await cli(["show", "small-b/0", "--run", path, "--html", page])).code, 0);
  const whyZero = await readFile(page, "utf8");
  assert.match(whyZero, /I would rather not/);
  await cli(["show", "small-a/0", "--run", path, "--html", page]);
  assert.match(
    await readFile(page, "utf8"),
    /<h2>Changes<\/h2>\n<details open><summary>[^<]*done\.txt <em>added<\/em><\/summary><pre>.*<ins>\+yes<\/ins>/s,
  );
  assert.match(whyZero, /<h2>Why<\/h2>.*verdict<\/th><td>graded, by script .*harness&#39;s exit code<\/th><td>0/s);
  assert.match((await cli(["show", "small-b/0", "--run", path])).stdout, /\nWhy\n +verdict +graded, by script at T\d\n/);
  assert.equal(jsonOf<Trajectory>(await cli(["show", "small-a/0", "--run", path, "--json"])).rollout_id, rollouts[0]?.rollout_id);
  const unknown = await cli(["show", "small-c/0", "--run", path]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, new RegExp(`no rollout or session "small-c/0"; it has .*${rollouts[0]?.rollout_id}`));

  for (const [format, rows] of [
    ["canonical", 4],
    ["flat", 4],
    ["chat", 4],
  ] as const) {
    const out = join(path, `${format}.jsonl`);
    const exported = await cli(["export", "--run", path, "--format", format, "--out", out, "--json"]);
    assert.equal(exported.code, 0, exported.stderr);
    assert.deepEqual(jsonOf<{ rows: number; out: string }>(exported).rows, rows, format);
    const lines = (await readFile(out, "utf8")).trimEnd().split("\n");
    assert.equal(lines.length, rows);
    assert.equal(
      (await cli(["export", "--run", path, "--format", format])).stdout,
      await readFile(out, "utf8"),
      "standard output is the same",
    );
  }
});

for (const how of ["replay", "again"] as const)
  test(`a run that was killed goes on (${how}): what was done is not repeated, what was running gets its next attempt, nothing is lost or doubled`, () =>
    killedAndResumed(how));

async function killedAndResumed(how: "replay" | "again"): Promise<void> {
  const hold = Promise.withResolvers<void>();
  let holding = 0;
  await using engine = await ScriptedEngine.start((request) => {
    const turns = request.messages.filter((message) => message.role === "assistant").length;
    if (turns === 0 || holding < 0 || engine.requests.length <= 2) return solve(request);
    holding++;
    return { ...solve(request), before: hold.promise };
  });
  const folder = await fresh();
  await writeTask(folder, "small");
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"], more: `concurrency: { run: 1, init: 1 }\nresume: ${how}\n` }));
  const out = join(folder, "runs");
  let path = "";
  {
    // Three rollouts, one at a time: the first gets through, the second is cut off in its second call.
    await using running = startCli(["run", "-c", file, "-o", out, "-n", "3", "--json"]);
    await running.until(() => holding === 1);
    [path = ""] = execFileSync("sh", ["-c", `ls -d ${out}/*`], { encoding: "utf8" })
      .trim()
      .split("\n");
    await running.until(async () => (await linesOf(join(path, "rollouts.jsonl"), RolloutRecord)).some((one) => one.state === "done"));
    await running.kill("SIGKILL");
  }
  holding = -1;
  hold.resolve();
  const before = await linesOf(join(path, "rollouts.jsonl"), RolloutRecord);
  assert.deepEqual(before.map((one) => `${one.sample_index}#${one.attempt} ${one.state}`).sort(), ["0#1 done", "0#1 run", "1#1 run"]);
  const acknowledged = (await linesOf(join(path, "trajectories.jsonl"), Trajectory))[0];
  const asked = engine.requests.length;

  const resumed = await cli(["run", "--resume", path, "--json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(
    jsonOf<Ran>(resumed).rollouts.map((one) => [one.sample_index, one.attempt, one.verdict?.reward]),
    [
      [0, 1, 1],
      [1, 2, 1],
      [2, 1, 1],
    ],
  );
  const trajectories = await linesOf(join(path, "trajectories.jsonl"), Trajectory);
  assert.deepEqual(trajectories[0], acknowledged, "what was acknowledged stays as it was");
  const keys = trajectories.map(
    (one) => `${one.group.sample_index}#${one.attempt} ${one.in_loss} ${one.calls.map((call) => call.outcome).join("+")}`,
  );
  const first = trajectories[0]?.calls[0]?.sampled_length ?? 0;
  const { resume } = jsonOf<Ran>(resumed).rollouts[1] ?? assert.fail();
  if (how === "replay") {
    // Its session goes on: the turn that was finished is not sampled again, and is trained, once.
    assert.deepEqual(keys.sort(), ["0#1 true delivered+delivered", "1#2 true delivered+failed+delivered", "2#1 true delivered+delivered"]);
    assert.equal(engine.requests.length, asked + 3);
    assert.deepEqual(resume, { how: "replay", spared_tokens: first, again_tokens: 0, why: null });
    const goesOn = trajectories.find(({ attempt }) => attempt === 2) ?? assert.fail();
    assert.deepEqual(goesOn.resumed, [{ attempt: 2, calls: 1, sampled_tokens: first }]);
    assert.equal(goesOn.fidelity.trainable_tokens, trajectories[0]?.fidelity.trainable_tokens);
  } else {
    assert.deepEqual(keys.sort(), [
      "0#1 true delivered+delivered",
      "1#1 false delivered+failed",
      "1#2 true delivered+delivered",
      "2#1 true delivered+delivered",
    ]);
    assert.equal(engine.requests.length, asked + 4);
    assert.deepEqual([resume?.how, resume?.spared_tokens, resume?.again_tokens], ["again", 0, first]);
  }

  const again = await cli(["run", "--resume", path, "--json"]);
  assert.equal(again.code, 0, again.stderr);
  assert.deepEqual(await linesOf(join(path, "trajectories.jsonl"), Trajectory), trajectories, "a finished run has nothing to go on with");
}

test("a run takes the tasks that `tasks list` shows for the same flags, and --resume the same ones", async () => {
  await using engine = await ScriptedEngine.start(solve);
  const flags = ["--task", "small-*", "--shuffle", "7", "--shard", "1/2"];
  const { folder, file, result } = await run(engine, { tasks: ["small-a", "small-b", "small-c", "other"], flags: [...flags, "-n", "1"] });
  assert.equal(result.code, 0, result.stderr);
  const { run: path, rollouts } = jsonOf<Ran>(result);
  const ids = rollouts.map(({ task_id }) => task_id).sort();
  const { task_sets } = jsonOf<{ task_sets: { tasks: { task_id: string }[] }[] }>(await cli(["tasks", "list", folder, ...flags, "--json"]));
  assert.deepEqual([ids.length, ids], [2, task_sets[0]?.tasks.map(({ task_id }) => task_id).sort()]);
  const resumed = jsonOf<Ran>(await cli(["run", "--resume", path, "--json"]));
  assert.deepEqual(resumed.rollouts.map(({ task_id }) => task_id).sort(), ids);

  for (const [wrong, message] of [
    [["--shard", "3/2"], /--shard is "3\/2": give the part and the number of parts/],
    [["--label", "language"], /--label is "language": give a name, = and a value/],
    [["--label", "language=c"], /none of the 4 tasks is chosen by \{"labels":\["language=c"\]\}: choose wider/],
  ] as const) {
    const refused = await cli(["run", "-c", file, "-o", join(folder, "runs"), ...wrong]);
    assert.deepEqual([refused.code, message.test(refused.stderr)], [2, true], refused.stderr);
  }
});

test("two processes do not run in one folder", async () => {
  const hold = Promise.withResolvers<void>();
  await using engine = await ScriptedEngine.start((request) => ({ ...solve(request), before: hold.promise }));
  const folder = await fresh();
  await writeTask(folder, "small");
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"] }));
  await using running = startCli(["run", "-c", file, "-o", join(folder, "runs"), "-n", "1", "--json"]);
  await running.until(() => engine.requests.length === 1);
  const [path = ""] = execFileSync("sh", ["-c", `ls -d ${folder}/runs/*`], { encoding: "utf8" })
    .trim()
    .split("\n");
  const second = await cli(["run", "--resume", path, "--json"]);
  assert.equal(second.code, 2);
  assert.match(
    jsonOf<{ error: { message: string } }>(second).error.message,
    new RegExp(`process ${running.child.pid} is at work in ${path}`),
  );
  hold.resolve();
  assert.equal((await running.ended).code, 0, "the first one is none the worse for it");
});

test("a run with branching leaves out tasks that cannot be forked, in the words of the service", async () => {
  await using engine = await ScriptedEngine.start(solve);
  const folder = await fresh();
  await writeTask(folder, "small");
  await writeTask(folder, "talks", "simulated_user: { instructions: You want a lamp. }\n");
  await setUnrepeatable(await writeTask(folder, "drifts"));
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small", "talks", "drifts"], more: "branching: { leaves: 4 }\n" }));
  const ran = await cli(["run", "-c", file, "-o", join(folder, "runs"), "--json"]);
  assert.equal(ran.code, 1, ran.stderr);
  assert.match(ran.stdout, /task talks has a user, .* so its rollouts cannot be forked: run it without branching\./);
  assert.match(
    ran.stdout,
    /task drifts has environment\.repeatable: false, .* give branching `unrepeatable: true` to fork it all the same/,
  );
  assert.deepEqual([...new Set(jsonOf<Ran>(ran).rollouts.map(({ task_id }) => task_id))], ["small"]);
});

/** By a Ctrl-C, which it answers with these words. */
async function interrupt(running: RunningCli, says: RegExp): Promise<void> {
  running.child.kill("SIGINT");
  await running.until(() => says.test(running.stderr));
}

test("a Ctrl-C begins nothing more and ends what runs, and --resume does the rest", {
  timeout: 300_000,
}, async () => {
  const hold = Promise.withResolvers<void>();
  await using engine = await ScriptedEngine.start((request) => ({ ...solve(request), before: hold.promise }));
  const folder = await fresh();
  for (const id of ["small-a", "small-b"]) await writeTask(folder, id);
  const file = join(folder, "run.yaml");
  const more = "concurrency: { run: 1, init: 1 }\n";
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small-a", "small-b"], more }));
  await using running = startCli(["run", "-c", file, "-o", join(folder, "runs"), "--json"]);
  await running.until(() => engine.requests.length === 1);
  await interrupt(running, /nothing more begins/);
  hold.resolve();
  const drained = await running.ended;
  assert.equal(drained.code, 130, drained.stderr);
  const { run: path, rollouts } = jsonOf<Ran>(drained);
  // The one that ran, and the one whose sandbox was ready or being made; the others have no record.
  assert.ok(rollouts.length === 1 || rollouts.length === 2, drained.stderr);
  assert.ok(rollouts.every(({ verdict }) => verdict?.reward === 1));
  const resumed = await cli(["run", "--resume", path, "--json"]);
  assert.deepEqual(
    jsonOf<Ran>(resumed).rollouts.map((one) => [one.attempt, one.verdict?.reward]),
    Array(4).fill([1, 1]),
  );
});

test("a Ctrl-C leaves the practice engine to the rollout that runs", { timeout: 300_000 }, async () => {
  const folder = await fresh();
  await writeTask(folder, "small");
  const [begun, go] = [join(folder, "begun"), join(folder, "go")];
  const call = `const [begun, go] = process.argv.slice(1);
require("fs").writeFileSync(begun, "");
const ask = async () => {
  if (!require("fs").existsSync(go)) return void setTimeout(ask, 50);
  const body = JSON.stringify({ model: "practice", max_tokens: 8, messages: [{ role: "user", content: "hi" }] });
  const headers = { authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": "application/json" };
  process.exit((await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", { method: "POST", headers, body })).ok ? 0 : 1);
};
ask();`;
  const file = join(folder, "run.yaml");
  const command = ["node", "-e", call, begun, go];
  await writeFile(file, runFile({ engine: "practice", command, tasks: ["small"], more: "retries: 0\n" }));
  await using running = startCli(["run", "-c", file, "-n", "1", "-o", join(folder, "runs"), "--json"]);
  await running.until(() => existsSync(begun));
  await interrupt(running, /nothing more begins/);
  await writeFile(go, "");
  const drained = await running.ended;
  const { rollouts } = jsonOf<Ran>(drained);
  assert.deepEqual(
    rollouts.map(({ state, error, verdict, summary }) => [state, error, verdict?.status, summary?.turns]),
    [["done", null, "graded", 1]],
    drained.stderr,
  );
});

test("a second Ctrl-C ends a run at once with what is recorded, and --resume finishes it", { timeout: 300_000 }, async () => {
  let isHeld = true;
  const hold = Promise.withResolvers<void>();
  await using engine = await ScriptedEngine.start((request) => (isHeld ? { ...solve(request), before: hold.promise } : solve(request)));
  const folder = await fresh();
  await writeTask(folder, "small");
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"] }));
  await using running = startCli(["run", "-c", file, "-o", join(folder, "runs"), "--json"]);
  await running.until(() => engine.requests.length === 2);
  await interrupt(running, /nothing more begins/);
  // Two that come together are one: from the terminal and from the launcher.
  await sleep(1_000);
  await interrupt(running, /stopping; what is recorded stays/);
  const stopped = await running.ended;
  assert.equal(stopped.code, 130, stopped.stderr);
  const { run: path, rollouts } = jsonOf<Ran>(stopped);
  assert.deepEqual(
    rollouts.map((one) => one.error?.code),
    ["cancelled", "cancelled"],
  );
  isHeld = false;
  const resumed = await cli(["run", "--resume", path, "--json"]);
  assert.deepEqual(
    jsonOf<Ran>(resumed).rollouts.map((one) => [one.attempt, one.verdict?.reward]),
    [
      [2, 1],
      [2, 1],
    ],
  );
});

test("what a harness does wrong is a typed record, and its siblings go on", { timeout: 300_000 }, async () => {
  await using engine = await ScriptedEngine.start(solve);
  const cases = [
    {
      name: "crashes at once",
      command: ["sh", "-c", "echo no such module >&2; exit 3"],
      message: /made no call to the LLM and ended with exit code 3: no such module/,
    },
    { name: "is not there", command: ["no-such-harness"], message: /exit code 127.*no-such-harness/ },
    { name: "never calls", command: ["true"], message: /made no call to the LLM.*OPENAI_BASE_URL/ },
  ];
  for (const { name, command, message } of cases) {
    const { result } = await run(engine, { command, flags: ["-n", "2"] });
    const { rollouts, run: path } = jsonOf<Ran>(result);
    assert.equal(rollouts.length, 2, name);
    for (const one of rollouts) {
      assert.deepEqual([one.error?.code, one.state, one.attempt, one.verdict], ["no_call_seen", "done", 1, null], name);
      assert.match(one.error?.message ?? "", message);
    }
    for (const one of await linesOf(join(path, "trajectories.jsonl"), Trajectory))
      assert.deepEqual([one.in_loss, one.in_baseline, one.mask_reason], [false, false, "no_call_seen"], name);
  }
});

test("one's own files are packed once and the command finds them; after a rollout without a call the run stops, and goes on mended", async () => {
  await using engine = await ScriptedEngine.start(solve);
  const folder = await fresh();
  await writeTask(folder, "small");
  await mkdir(join(folder, "lib"));
  await writeFile(join(folder, "lib", "asking.py"), asking);
  const program = join(folder, "agent.py");
  await writeFile(program, "import sys\nsys.exit('not ready')\n");
  const file = join(folder, "run.yaml");
  const harness = `harness: { command: [python3, agent.py, "{instruction}"], files: [agent.py, lib/] }`;
  const text = runFile({ engine: engine.url, tasks: ["small"], more: "concurrency: { run: 1, init: 1, post: 1 }\n" });
  await writeFile(file, text.replace(/^harness: .*$/m, harness));
  const out = ["-o", join(folder, "runs")];
  const stopped = await cli(["run", "-c", file, ...out, "-n", "40"]);
  assert.equal(stopped.code, 1);
  assert.match(stopped.stderr, /THE RUN STOPS: command made no call to the LLM and ended with exit code 1: not ready/);
  const [run = ""] = execFileSync("sh", ["-c", `ls -d ${folder}/runs/*`], { encoding: "utf8" })
    .trim()
    .split("\n");
  const before = await linesOf(join(run, "rollouts.jsonl"), RolloutRecord);
  assert.ok(new Set(before.map((one) => one.rollout_id)).size < 10, "most of the 40 were not begun");
  assert.equal(engine.requests.length, 0);

  await writeFile(program, "import sys\nfrom lib.asking import ask\nask(sys.argv[1])\n");
  await writeFile(join(run, "run.json"), (await readFile(join(run, "run.json"), "utf8")).replace('"samples": 40', '"samples": 2'));
  const mended = jsonOf<Ran>(await cli(["run", "--resume", run, "--json"]));
  assert.deepEqual(
    mended.rollouts.filter((one) => one.sample_index < 2).map((one) => [one.attempt, one.verdict?.reward, one.error]),
    [
      [2, 1, null],
      [2, 1, null],
    ],
  );
  const one = await cli(["run", "-c", await withFiles(folder, "../x"), ...out, "--json"]);
  assert.match(jsonOf<{ error: { message: string } }>(one).error.message, /harness\.files has "\.\.\/x": give paths below/);
  const away = await cli(["run", "-c", await withFiles(folder, "[../x]"), ...out, "--json"]);
  assert.match(jsonOf<{ error: { message: string } }>(away).error.message, /harness\.files has "\.\.\/x": give paths below/);
});

/** Asks once and does what the model calls, with what every Python has. */
const asking = `import json, os, subprocess, urllib.request
def ask(instruction):
    body = {"model": os.environ["ALIDADE_MODEL"], "messages": [{"role": "user", "content": instruction}],
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    subprocess.run(json.loads(message["tool_calls"][0]["function"]["arguments"])["command"], shell=True, check=True)
`;

async function withFiles(folder: string, files: string): Promise<string> {
  const file = join(folder, "other.yaml");
  await writeFile(file, (await readFile(join(folder, "run.yaml"), "utf8")).replace(/files: \[.*\]/, `files: ${files}`));
  return file;
}

test("a harness that hangs past its budget is killed with its children, and is graded as it stands", { timeout: 300_000 }, async () => {
  await using engine = await ScriptedEngine.start(solve);
  const folder = await fresh();
  await writeTask(folder, "small", "", { agent_seconds: 10 });
  const file = join(folder, "run.yaml");
  const mark = `987${process.pid}`;
  // It does the work, and then hangs with a child that tries to survive.
  const hang = `node ${join(import.meta.dirname, "../../fakes/rollouts/chat-harness.ts")} go; (setsid sleep ${mark} &) ; sleep ${mark}`;
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"], command: ["sh", "-c", hang] }));
  const result = await cli(["run", "-c", file, "-o", join(folder, "runs"), "-n", "1", "--json"]);
  const [one] = jsonOf<Ran>(result).rollouts;
  assert.deepEqual([one?.error?.code, one?.stop_reason, one?.verdict?.reward], ["harness_timeout", "harness_timeout", 1]);
  assert.match(one?.error?.message ?? "", /still running after its 10 s/);
  const left = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n");
  assert.deepEqual(
    left.filter((args) => args === `sleep ${mark}`),
    [],
  );
});

test("an engine that breaks off mid-stream costs an attempt, typed, and the next one succeeds; the other rollout never sees it", {
  timeout: 300_000,
}, async () => {
  let [broken, asked] = [0, 0];
  await using engine = await ScriptedEngine.start((request) => {
    const isSecond = request.messages.some((message) => message.role === "assistant");
    const breaksOff = { text: "a long answer that never ends", cutAfter: 5 };
    // Right after, the proxy's own question fails too: it is the engine, and not what it was asked. The next one is answered.
    const isCanary = request.probe && JSON.stringify(request.messages).includes(canaryText);
    if (broken > 0 && isCanary && asked++ === 0) return breaksOff;
    if (isSecond && broken++ === 0) return breaksOff;
    return solve(request);
  });
  const { result } = await run(engine, {});
  const { rollouts, run: path } = jsonOf<Ran>(result);
  assert.equal(result.code, 0, result.stderr);
  assert.deepEqual(rollouts.map((one) => one.attempt).sort(), [1, 2]);
  assert.deepEqual(
    rollouts.map((one) => one.verdict?.reward),
    [1, 1],
  );
  const failed = (await linesOf(join(path, "rollouts.jsonl"), RolloutRecord)).find((one) => one.state === "done" && one.error !== null);
  assert.equal(failed?.error?.code, "engine_error");
  assert.match(
    failed?.error?.message ?? "",
    /the last call of the harness failed: .*broke off in the middle of an answer.*; the engine failed a short question of ours/,
  );
  assert.equal(failed?.verdict, null, "null, never a fake 0");
  const masked = (await linesOf(join(path, "trajectories.jsonl"), Trajectory)).filter((one) => !one.in_loss);
  assert.deepEqual(
    masked.map((one) => [one.status, one.reward, one.mask_reason, one.fidelity.excluded.failed]),
    [["failed", null, "engine_error", 5]],
  );
});

test("an engine that goes away in the middle of a run ends its rollouts typed, and --resume with the engine's new place finishes them", {
  timeout: 300_000,
}, async () => {
  const engine = await ScriptedEngine.start((request) => {
    if (request.messages.some((message) => message.role === "assistant")) queueMicrotask(() => void engine[Symbol.asyncDispose]());
    return solve(request);
  });
  const { result } = await run(engine, { more: "retries: 0\n" });
  const { run: path, rollouts } = jsonOf<Ran>(result);
  assert.equal(result.code, 1);
  for (const one of rollouts) assert.match(one.error?.code ?? "", /^engine_(unreachable|error)$/);
  await using moved = await ScriptedEngine.start(solve);
  const resumed = await cli(["run", "--resume", path, "--engine", moved.url, "--json"]);
  assert.deepEqual(
    jsonOf<Ran>(resumed).rollouts.map((one) => [one.attempt, one.verdict?.reward]),
    [
      [2, 1],
      [2, 1],
    ],
  );
});

test("a grader that times out is a verdict without a reward, and the other task is graded", { timeout: 300_000 }, async () => {
  await using engine = await ScriptedEngine.start(solve);
  const folder = await fresh();
  await writeTask(folder, "fine");
  await writeTask(folder, "stuck", "", { grade_seconds: 1 });
  const task = join(folder, "stuck", "task.yaml");
  const text = (await readFile(task, "utf8")).replace(/command: .*/, 'command: [sh, -c, "sleep 600"]');
  await writeFile(task, text);
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["fine", "stuck"] }));
  const result = await cli(["run", "-c", file, "-o", join(folder, "runs"), "-n", "1", "--json"]);
  assert.equal(result.code, 1, "one rollout has no reward");
  const [fine, stuck] = jsonOf<Ran>(result).rollouts;
  assert.equal(fine?.verdict?.reward, 1);
  assert.deepEqual(
    [stuck?.verdict?.status, stuck?.verdict?.reward, stuck?.verdict?.error?.code],
    ["grader_timeout", null, "grader_timeout"],
  );
  const { attempts } = jsonOf<{ attempts: AttemptTally }>(result);
  assert.deepEqual([stuck?.attempt, attempts.attempts, attempts.masked], [1, 2, { grader_timeout: 1 }], "it is not drawn again");
  assert.match(attempts.alarms.join(), /^task stuck: 100 % of 1 attempts/);
});

test("what a user asks for wrongly stops the run before it begins, and the message names it", { timeout: 300_000 }, async () => {
  await using engine = await ScriptedEngine.start(solve);
  await using textOnly = await ScriptedEngine.start(() => ({ quirk: "no_ids" }));
  const outside = "environment2: {}\n";
  const cases: [string, { more?: string; flags?: string[]; task?: string; engine?: string }, string, RegExp, string | null][] = [
    ["wrong key", { more: "sample: 3\n" }, "config_invalid", /run\.yaml: "sample" is no key .*config --schema/, "sample"],
    ["wrong nested key", { more: "budgets: { max_turn: 3 }\n" }, "config_invalid", /"budgets\.max_turn" is no key/, "budgets.max_turn"],
    [
      "wrong value",
      { flags: ["-n", "many"] },
      "config_invalid",
      /--samples <number>' argument 'many' is invalid. Give a number/,
      "samples",
    ],
    ["wrong purpose", { flags: ["--purpose", "fun"] }, "config_invalid", /purpose is "fun": .*"train"\|"eval"\|"live"/, "purpose"],
    [
      "unknown harness",
      { flags: ["--harness", "nope"] },
      "harness_unknown",
      /no harness "nope"; there are: pi, codex, claude-code/,
      "harness",
    ],
    ["unknown sandbox", { flags: ["--sandbox", "vm"] }, "config_invalid", /sandbox is "vm": .*"docker"\|"process"/, "sandbox"],
    ["no engine there", { engine: "http://127.0.0.1:9" }, "engine_unreachable", /cannot reach the engine at http:\/\/127\.0\.0\.1:9/, null],
    ["no URL", { engine: "localhost:8000" }, "config_invalid", /engine\.url is "localhost:8000": give an http/, "engine.url"],
    ["no token ids", { engine: textOnly.url }, "engine_without_token_ids", /return_token_ids/, null],
    [
      "path outside",
      { task: "gold_files: ../../etc\n" },
      "task_invalid",
      /task\.yaml: gold_files: \.\.\/\.\.\/etc leaves the task's own folder/,
      "gold_files",
    ],
    ["wrong task key", { task: outside }, "task_invalid", /task\.yaml: .*environment2/, "environment2"],
    ["no such task", { flags: ["no-such-folder"] }, "task_invalid", /there is no file or folder .*no-such-folder/, "tasks"],
    ["task twice", { flags: ["{task}", "{task}"] }, "task_invalid", /two tasks of this run have the task_id small/, "task_id"],
    ["no sandbox allowed", { more: "unsafe_host: false\n" }, "unsafe_host_refused", /--unsafe-host/, "unsafe_host"],
  ];
  for (const [name, { more = "", flags = [], task = "", engine: url = engine.url }, code, message, param] of cases) {
    const folder = await fresh();
    const place = await writeTask(folder, "small", task);
    const file = join(folder, "run.yaml");
    const text = runFile({ engine: url, tasks: ["small"], more });
    await writeFile(file, more.startsWith("unsafe_host") ? text.replace("unsafe_host: true\n", "") : text);
    const result = await cli([
      "run",
      ...flags.map((flag) => flag.replace("{task}", place)),
      "-c",
      file,
      "-o",
      join(folder, "runs"),
      "--json",
    ]);
    const { error } = jsonOf<{ error: { code: string; message: string; param: string | null } }>(result);
    assert.equal(error?.code, code, `${name}: ${result.stdout}`);
    assert.match(error.message, message, name);
    assert.equal(error.param, param, name);
    assert.equal(result.code, code === "engine_unreachable" ? 1 : 2, name);
    assert.equal(result.stderr.includes("    at "), false, `${name}: no stack trace`);
  }
  assert.equal(engine.requests.length, 0);
});

test("--resume of what is no run, and with another configuration, is refused in words", async () => {
  const folder = await fresh();
  const nothing = await cli(["run", "--resume", folder]);
  assert.equal(nothing.code, 2);
  assert.match(nothing.stderr, /is no folder of a run: it has no run\.json/);
  await writeFile(join(folder, "run.json"), "{");
  assert.match((await cli(["run", "--resume", folder])).stderr, /run\.json is damaged/);
  assert.match((await cli(["run", "--resume", folder, "-n", "3"])).stderr, /samples cannot be given as well/);
});

test("a run asks the engine whose weights it serves: another name is refused, also on --resume, and a change under the run is told", async () => {
  await using engine = await ScriptedEngine.start((request, index) => {
    if (index === 0) engine.weightVersion = "step-4";
    return solve(request);
  });
  engine.weightVersion = "step-3";
  const refused = await run(engine, { more: "policy: { version: nope, step: 99 }\n" });
  assert.notEqual(refused.result.code, 0);
  assert.match(refused.result.stdout, /would be .*nope.*, but engine .*vllm.* says that it serves .*step-3/);
  assert.equal(engine.requests.length, 0);
  // The proxy tells its operator on the process's own standard error.
  const { result } = await run(engine, { more: "policy: { version: step-3, step: 3 }\n", by: cliProcess });
  assert.match(result.stderr, /engine "vllm" serves other weights: it said "step-3" and says "step-4" now/);
  const resumed = await cli(["run", "--resume", jsonOf<Ran>(result).run]);
  assert.notEqual(resumed.code, 0);
  assert.match(resumed.stderr, /would be "step-3", but engine "vllm" says that it serves "step-4"/);
});

test("rollouts whose harness prints its working folder have one prompt, and are one group to NeMo RL", async (t) => {
  if ((await samePlace()) === null) return t.skip("this machine lets no user mount, so each process sandbox has a path of its own");
  await using engine = await ScriptedEngine.start(solve);
  const { result } = await run(engine, { command: ["node", chatHarness, "{instruction} You are in {workdir}."] });
  const { run: path } = jsonOf<Ran>(result);
  const exported = await cli(["export", "--run", path, "--format", "nemo-rl"]);
  const rows = exported.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { message_log: { token_ids: number[] }[]; length: number });
  assert.equal(rows.length, 2, exported.stderr);
  assert.deepEqual(rows[0]?.message_log[0], rows[1]?.message_log[0]);
  assert.match(JSON.stringify(engine.requests[0]?.messages), /You are in \/.*alidade-sandbox\/work\./);
});

test("a run says at its end of which task the groups begin with different prompts, and fidelity says the same", async () => {
  await using engine = await ScriptedEngine.start(solve);
  const { result } = await run(engine, { command: ["sh", "-c", 'exec node "$0" "$1 You are process $$."', chatHarness, "{instruction}"] });
  const { run: path, different_prompts } = jsonOf<Ran & { different_prompts: unknown }>(result);
  assert.deepEqual(different_prompts, [{ task_id: "small", groups: 1, of_groups: 1 }]);
  const again = await cli(["run", "--resume", path]);
  assert.match(again.stderr, /task small: in 1 of 1 groups the rollouts begin with different prompts\./);
  const { stdout } = await cli(["fidelity", "--run", path]);
  assert.match(stdout, /task small: in 1 of 1 groups the rollouts begin with different prompts\./);
});

test("a name that leads to no engine is refused before the first sandbox, with the names that there are", async () => {
  await using engine = await ScriptedEngine.start(solve);
  const wrong: [more: string, said: RegExp][] = [
    ["model: nope", /model is "nope": no engine serves it; they serve /],
    ["routes: [{ engine: nope }]", /routes\.0\.engine is "nope": no engine has this name; there are: vllm/],
  ];
  for (const [more, said] of wrong) {
    const { folder, result } = await run(engine, { more });
    assert.equal(result.code, 2, result.stdout);
    assert.match(result.stdout, new RegExp(said.source.replaceAll('"', '\\\\"')));
    await assert.rejects(readFile(join(folder, "runs", "rollouts.jsonl")));
  }
  assert.equal(engine.requests.length, 0);
});
