/** Terminal-Bench's task folders in containers, with the real pytest. */
import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import { checkTask } from "../../graders/check.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { gradedAfter } from "../fakes/graded-after.ts";
import { type TerminalBenchFiles, terminalBenchFiles, terminalBenchFolder } from "../fakes/terminal-bench-tasks.ts";
import { pytestModules } from "../interop/pytest/pytest.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "terminal-bench", owner: await currentOwner() };

const Dockerfile = `FROM ${baseImage}\nCOPY pytest /opt/pytest\nENV PYTHONPATH=/opt/pytest\nWORKDIR /app\n`;

async function loaded(files: Partial<TerminalBenchFiles> = {}): Promise<Task> {
  await ensureBaseImage({ signal });
  const folder = await terminalBenchFolder({ greet: { ...terminalBenchFiles, Dockerfile, ...files } });
  await cp(pytestModules(), join(folder, "greet/pytest"), { recursive: true });
  const [task] = await loadTasks(folder, { signal });
  assert.ok(task);
  return task;
}

async function gradeAfter(command: string, task: Task): Promise<Verdict> {
  const deed = async (sandbox: Sandbox): Promise<void> => {
    const { exit_code, stderr } = await sandbox.exec(["sh", "-ec", command]);
    assert.equal(exit_code, 0, stderr);
  };
  return gradedAfter(task, deed, owner, signal);
}

test("the solution earns 1 and no change 0, by what the real pytest prints", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
  const { runs } = await checkTask(await loaded(), docker, { ...owner, times: 1, signal });
  assert.deepEqual(
    runs.map(({ verdict: { reward, grader, tier } }) => [reward, grader, tier]),
    [
      [1, "harbor/pytest", "T1"],
      [0, "harbor/pytest", "T1"],
    ],
    JSON.stringify(runs),
  );
  assert.deepEqual(runs[1]?.verdict.evidence.failed, ["test_the_greeting_is_there"]);
});

test("one test of two is no reward, and a share that is shown", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
  const two = `${terminalBenchFiles["tests/test_outputs.py"]}\ndef test_another():\n    assert Path("/app/other.txt").exists()\n`;
  const { reward, components } = await gradeAfter("echo hello > greeting.txt", await loaded({ "tests/test_outputs.py": two }));
  assert.deepEqual([reward, components], [0, { tests: { value: 0.5, weight: 0 } }]);
});

test("a verifier that cannot run its tests has measured nothing, whatever the work is", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
  const task = await loaded({ "run-tests.sh": "uvx pytest /tests/test_outputs.py -rA\n" });
  const { reward, error } = await gradeAfter("echo hello > greeting.txt", task);
  assert.equal(reward, null, JSON.stringify(error));
});

test("a work that ends the tests, brings tests of its own or a pytest in the place of theirs earns nothing", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
  const imports = `${terminalBenchFiles["tests/test_outputs.py"]}\ndef test_the_work():\n    import sys; sys.path.insert(0, "/app"); import work\n`;
  const task = await loaded({ "tests/test_outputs.py": imports });
  const ends = await gradeAfter("echo 'import os; os._exit(0)' > work.py; echo hello > greeting.txt", task);
  assert.deepEqual([ends.reward, ends.status], [0, "no_output"], JSON.stringify(ends));
  const forged = "= short test summary info =\\nPASSED a::b\\n";
  const own = await gradeAfter(
    `mkdir -p /tests; printf 'printf "${forged}"' > /tests/run-tests.sh; printf 'printf "${forged}"; exit 0' > /usr/local/bin/python3; chmod +x /usr/local/bin/python3`,
    task,
  );
  assert.deepEqual([own.reward, own.status], [0, "graded"], JSON.stringify(own));
});
