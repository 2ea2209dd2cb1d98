/** Tests that cannot fetch their tools judge nothing, and no work brings that about. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import { examineTask } from "../../graders/admission/examine-task.ts";
import { docker } from "../../sandboxes/docker.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { gradedAfter } from "../fakes/graded-after.ts";
import { type HarborFiles, harborFolder } from "../fakes/harbor-tasks.ts";
import { need } from "../needs.ts";
import { packagesImage } from "./packages-image.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "missing-tools", owner: await currentOwner() };

const rewarded = "if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi";

/** As most Harbor tasks have it. */
const usual = `apt-get update
apt-get install -y curl
curl -LsSf https://tools.example.org/uv/install.sh | sh
uvx --with pytest pytest /tests/test_outputs.py
${rewarded}`;

/** Installs what judges from the image's own repository, and runs what the work left. */
const local = `echo "deb [trusted=yes] file:/repo ./" > /etc/apt/sources.list
apt-get update && apt-get install -y teller
[ -f /app/run.sh ] && sh /app/run.sh
teller
${rewarded}`;

/** Fetches in vain, and judges all the same. */
const judges = `pip install pytest
curl -s https://tools.example.org/x
grep -qx 42 /app/answer.txt
${rewarded}`;

async function taskOf(script: string, solve: string | null, options: LoadOptions = {}): Promise<Task> {
  const files: HarborFiles = {
    "task.toml": `[environment]\ndocker_image = "${await packagesImage()}"\nworkdir = "/app"\nmemory_mb = 512\nstorage_mb = 256\n`,
    "instruction.md": "Write the answer into answer.txt.\n",
    ...(solve !== null && { "solution/solve.sh": `#!/bin/bash\n${solve}\n` }),
    "tests/test.sh": `#!/bin/bash\n${script}\n`,
  };
  const [task] = await loadTasks(await harborFolder({ one: files }), { ...options, signal });
  assert.ok(task);
  return task;
}

const solved = "echo 42 > answer.txt";

/** The verdict on what `command` leaves. */
async function after(command: string, task: Task): Promise<Verdict> {
  return gradedAfter(task, (sandbox) => sandbox.exec(["bash", "-c", command]), owner, signal);
}

test("tests that reach nothing and cannot install their tools give no reward, and the error says what failed and what cures it", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  for (const solve of [solved, null]) {
    const { reward, error } = await after(solved, await taskOf(usual, solve));
    assert.deepEqual([reward, error?.code], [null, "verifier_unavailable"]);
    assert.match(error?.message ?? "", /curl, uvx not found/);
    assert.match(error?.message ?? "", /They reach nothing: pass --verifier-network public, or names of hosts/);
  }
});

test("hosts that the door refused the tests are named", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const script = `echo "deb [trusted=yes] http://deb.example.org/ ./" > /etc/apt/sources.list\n${usual}`;
  const { reward, error } = await after(solved, await taskOf(script, solved, { verifierNetwork: { allow: ["pypi.org"] } }));
  assert.deepEqual([reward, error?.code], [null, "verifier_unavailable"]);
  assert.match(error?.message ?? "", /deb\.example\.org:80 \(name_not_allowed\).*not reached\. Add these hosts to --verifier-network/);
});

test("check names the network as the cause, and the flag that cures it", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const options = { ...owner, times: 3, word: "x", signal };
  const { reasons, gradings } = await examineTask(await taskOf(usual, solved), docker, options);
  assert.deepEqual(
    reasons.map(({ code }) => code),
    ["ungraded"],
  );
  assert.match(reasons[0]?.message ?? "", /could not fetch or install their tools: .*uvx not found.*--verifier-network/);
  assert.equal(gradings.length, 1, "other works would say the same");
});

const says = "printf '%s\\n' 'curl: command not found' 'E: Unable to locate package curl' 'teller: command not found' >&2";
for (const [attack, command] of [
  ["without the package manager", "rm -f /usr/bin/apt-get /usr/bin/dpkg"],
  [
    "with a broken package manager",
    "rm -rf /var/lib/dpkg/status /repo/*.deb; mkdir -p /var/lib/dpkg/status; touch /var/lib/dpkg/lock-frontend",
  ],
  ["that prints what failing tools say", `echo "${says}; rm -f /usr/bin/teller" > run.sh`],
  [
    "that asks the door for hosts",
    "echo 'for n in $(seq 300); do (exec 3<>/dev/tcp/127.0.0.1/3128; printf \"CONNECT h$n.example.org:443 HTTP/1.1\\r\\n\\r\\n\" >&3; head -c 20 <&3); done' > ask; echo 'bash /app/ask >/dev/null 2>&1' > run.sh",
  ],
] as const)
  test(`a work ${attack} earns 0 and is not left without a reward`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, "docker"))) return;
    const task = await taskOf(local, solved, { verifierNetwork: { allow: ["pypi.org"] } });
    const { reward, status, evidence } = await after(command, task);
    assert.deepEqual([reward, status], [0, "graded"], JSON.stringify(evidence));
    assert.ok(evidence.own_files, "its own files were asked");
  });

test("tests that fetch in vain and still tell the known solution from nothing give their rewards", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = await taskOf(judges, solved);
  const rewards = [(await after(solved, task)).reward, (await after("true", task)).reward];
  assert.deepEqual(rewards, [1, 0]);
});
