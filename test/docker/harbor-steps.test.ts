/** A task of several steps: the harness is started for each in one sandbox, and each is graded before the next one begins. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { checkTask } from "../../graders/check.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { type HarborFiles, harborFolder } from "../fakes/harbor-tasks.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness, runFile } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("steps");
const signal = AbortSignal.timeout(900_000);

/** Says what the step's file is worth, and says 0 where a process of the agent's goes on while it is graded. */
const earns = (file: string, values: string) =>
  `#!/bin/sh\n. /tests/shared.sh\nif [ -f /app/${file} ]; then echo '${values}'; else echo '{"reward": 0}'; fi > /logs/verifier/reward.json\n`;

const stepped: HarborFiles = {
  "task.toml": `[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
[environment]
memory_mb = 256
storage_mb = 256
[[steps]]
name = "one"
[[steps]]
name = "two"
min_reward = 0.75
[[steps]]
name = "three"
`,
  "environment/Dockerfile": `FROM ${baseImage}\nCOPY chat-harness.ts /opt/chat-harness.ts\nWORKDIR /app\n`,
  "tests/shared.sh": "true\n",
  ...Object.fromEntries(
    ["one", "two", "three"].flatMap((name) => [
      [`steps/${name}/instruction.md`, `Do ${name}.\n`],
      [`steps/${name}/solution/solve.sh`, `touch /app/${name}\n`],
    ]),
  ),
  "steps/one/tests/test.sh": earns("one", '{"reward": 1, "extra": 2}'),
  "steps/two/tests/test.sh": earns("two", '{"reward": 0.5}'),
  "steps/three/tests/test.sh": earns("three", '{"reward": 1}'),
  // It is run behind the files of the step, in the sandbox of the steps before.
  "steps/two/workdir/setup.sh": "test -f one && mv seed begun\n",
  "steps/two/workdir/seed": "1\n",
};

/** By instruction: a command, then an end. */
const playing =
  (commands: Record<string, string>) =>
  ({ messages }: WireRequest): ScriptedReply => {
    if (messages.some(({ role }) => role === "assistant")) return { text: "done" };
    const [, name = ""] = /Do (\w+)\./.exec(JSON.stringify(messages)) ?? [];
    return { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: commands[name] ?? "true" }) }] };
  };

async function run(name: string, files: HarborFiles, commands: Record<string, string>, more: string[] = []) {
  const said: string[] = [];
  const play = playing(commands);
  await using engine = await ScriptedEngine.start((request) => {
    said.push(/Do \w+/.exec(JSON.stringify(request.messages))?.[0] ?? "");
    return play(request);
  });
  const folder = await harborFolder({ one: { ...files, "environment/chat-harness.ts": await readFile(chatHarness, "utf8") } });
  const file = join(scratch, `${name}.yaml`);
  const command = ["/opt/alidade/node/bin/node", "/opt/chat-harness.ts", "{instruction}"];
  await writeFile(
    file,
    runFile({ engine: engine.url, tasks: [folder], command }).replace("sandbox: process\nunsafe_host: true", "sandbox: docker"),
  );
  const result = await cli(["run", "-c", file, "-n", "1", "-o", join(scratch, name), ...more, "--json"]);
  const { run: path, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  const [record] = rollouts;
  assert.ok(record, result.stderr);
  return { path, record, said: [...new Set(said.filter((word) => word !== ""))], stderr: result.stderr };
}

const valuesOf = ({ verdict }: RolloutRecord) =>
  Object.fromEntries(Object.entries(verdict?.components ?? {}).map(([component, { value }]) => [component, value]));

test("each step has its instruction, its files and its tests in one sandbox that goes on, and no step follows one below its least reward", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const { path, record, said, stderr } = await run("stepped", stepped, {
    one: "touch one /logs/agent/of-one; sleep 600 >/dev/null 2>&1 & echo $! > pid",
    two: "test -f begun && kill -0 $(cat pid) && test ! -e /logs/agent/of-one && test ! -e /tests && touch two",
    three: "touch three",
  });
  assert.deepEqual(valuesOf(record), { reward: 0.75, extra: 1, "step/one": 1, "step/two": 0.5 }, JSON.stringify(record.verdict) + stderr);
  assert.deepEqual(said, ["Do one", "Do two"]);
  assert.deepEqual([record.verdict?.reward, record.verdict?.tier, record.verdict?.status], [0.75, "T1", "graded"]);
  assert.deepEqual(
    record.steps.map(({ name, stop_reason, work }) => [name, stop_reason, work !== null]),
    [
      ["one", "exited", true],
      ["two", "exited", true],
    ],
  );
  assert.notEqual(record.steps[0]?.work?.sha256, record.work?.sha256);
  const again = await cli(["regrade", path, "--json"]);
  assert.equal(again.code, 0, again.stderr);
  const { regraded } = jsonOf<{ regraded: { before: number; after: number; task_changed: boolean }[] }>(again);
  assert.deepEqual(
    regraded.map(({ before, after, task_changed }) => [before, after, task_changed]),
    [[0.75, 0.75, false]],
  );
});

test("steps are graded in the agent's own sandbox where the run says so: its processes are ended, and its next step finds no tests", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  // The tests are the agent's, and run its program, which closes their folder: root can neither look nor remove there.
  const users = { "[agent]": '[agent]\nuser = "agent"', "[verifier]": '[verifier]\nuser = "agent"' };
  const files = {
    ...stepped,
    "task.toml": Object.entries(users).reduce((text, [from, to]) => text.replace(from, to), stepped["task.toml"] ?? ""),
    "environment/Dockerfile": `${stepped["environment/Dockerfile"]}RUN chown 1000:1000 /app\n`,
    "steps/one/tests/test.sh": `${stepped["steps/one/tests/test.sh"]}mkdir -p /tests/in/x /logs/verifier/in; touch /tests/in/x/hidden; sh /app/one\n`,
  };
  const found = "find /tests /logs/verifier -mindepth 1 2>/dev/null";
  const commands = {
    one: "echo 'chmod 700 /tests' > one; sleep 600 >/dev/null 2>&1 & echo $! > pid",
    two: `test -f begun && ! kill -0 $(cat pid) && test -z "$(${found})" && touch two`,
  };
  const { record, path, said, stderr } = await run("shared", files, commands, ["--grading", "shared"]);
  assert.deepEqual(valuesOf(record), { reward: 0.75, extra: 1, "step/one": 1, "step/two": 0.5 }, JSON.stringify(record.verdict) + stderr);
  assert.deepEqual(
    [record.verdict?.tier, record.verdict?.isolation, record.verdict?.status, said],
    ["T0", "shared", "graded", ["Do one", "Do two"]],
  );
  const { ran = 0, post = 0 } = record.times;
  assert.ok(ran > 0 && ran <= post, JSON.stringify(record.times));
  const again = await cli(["regrade", path, "--grading", "fresh", "--json"]);
  const { regraded } = jsonOf<{ regraded: { before: number; after: number }[] }>(again);
  assert.deepEqual(
    regraded.map(({ before, after }) => [before, after]),
    [[0.75, 0.75]],
    again.stderr,
  );
});

test("an agent that destroys its sandbox in a step keeps what it earned before, and earns nothing for that step and those after it", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const files = { ...stepped, "task.toml": (stepped["task.toml"] ?? "").replace("min_reward = 0.75\n", "") };
  const { record, said } = await run("destroyed", files, { one: "touch one", two: "cd /; rm -rf /app", three: "touch three" });
  assert.deepEqual(
    [valuesOf(record)["step/one"], valuesOf(record)["step/two"], valuesOf(record)["step/three"]],
    [1, 0, 0],
    JSON.stringify(record.verdict),
  );
  assert.deepEqual([record.verdict?.reward, record.error?.code, said], [1 / 3, "output_unreadable", ["Do one", "Do two"]]);
});

test("the known solutions of the steps are graded step by step, and so is no change", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const folder = await harborFolder({
    one: {
      ...stepped,
      "environment/chat-harness.ts": "",
      "task.toml": `multi_step_reward_strategy = "final"\n${stepped["task.toml"]}`.replace("0.75", "0.5"),
    },
  });
  const [task] = await loadTasks(folder, { signal });
  assert.ok(task);
  const { runs } = await checkTask(task, docker, { run_id: "steps", owner: await currentOwner(), times: 1, signal });
  assert.deepEqual(
    runs.map(({ verdict }) => [verdict.reward, Object.keys(verdict.components)]),
    [
      [1, ["reward", "step/one", "step/two", "step/three"]],
      [0, ["reward", "step/one", "step/two"]],
    ],
    JSON.stringify(runs),
  );
});
