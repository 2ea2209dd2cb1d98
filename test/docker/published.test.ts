/** A row of a published set with an image of this machine, through Docker: its known solution, no change, and what an agent finds. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import type { Task } from "../../base/schema/task.ts";
import { examineTask } from "../../graders/admission/examine-task.ts";
import { checkTask } from "../../graders/check.ts";
import { deliveredSandbox } from "../../graders/grade.ts";
import { forgedReport } from "../../graders/probes/forged-reports.ts";
import { patchedAssertions } from "../../graders/probes/hollow-checks.ts";
import { docker } from "../../sandboxes/docker.ts";
import { conceal } from "../../sandboxes/set-up.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { need } from "../needs.ts";
import { encoded, publishedRow, tested } from "./published-row.ts";
import { testImage } from "./test-image.ts";

/** So that the commit has the same name each time. */
const atOneTime = { GIT_AUTHOR_DATE: "2024-01-01T00:00:00Z", GIT_COMMITTER_DATE: "2024-01-01T00:00:00Z" };

/** The repository of the image above, as a bare clone `owner/add.git`. The commit that a row names. */
async function mirrored(folder: string): Promise<string> {
  const script = `set -e; mkdir -p work owner; cd work
git init -q -b main .; git config user.name a; git config user.email a@b; mkdir tests
echo 'secret = "of the past"' > add.py; git add -A; git commit -qm past
printf 'def add(a, b):\n    return a - b\n' > add.py; echo ${encoded(tested)} | base64 -d > tests/test_add.py
touch tests/__init__.py; echo 'ONE = 1' > tests/one.py; git add -A; git commit -qm base; git rev-parse HEAD; git tag base
printf 'def add(a, b):\n    return a + b  # secret\n' > add.py; git commit -qam future; git tag later
git clone -q --bare . ../owner/add.git`;
  const { stdout } = await promisify(execFile)("sh", ["-c", script], { cwd: folder, env: { ...process.env, ...atOneTime } });
  return stdout.trim();
}

/** The row with more columns, as a task for this machine. */
async function loadedRow(t: TestContext, more: object, options: LoadOptions = {}): Promise<Task> {
  const row = { ...(await publishedRow()), ...more };
  const folder = await mkdtemp(join(tmpdir(), "alidade-published-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "rows.jsonl"), JSON.stringify(row));
  const [loaded] = await loadTasks(join(folder, "rows.jsonl"), options);
  assert.ok(loaded);
  // The image is of this machine's own kind of CPU.
  return {
    ...loaded,
    environment: { ...loaded.environment, platform: null },
    limits: { ...loaded.limits, memory_mb: 1_024, disk_mb: 512 },
  };
}

test("a published row with an image is graded in Docker by its own script: gold 1, no change 0, one commit for the agent", async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = await loadedRow(t, {});
  const options = { run_id: "run-test-published", owner: await currentOwner(), signal: t.signal };
  await docker.prepare([task.environment], { signal: t.signal });
  const { passed, runs } = await checkTask(task, docker, { ...options, times: 1 });
  assert.deepEqual(
    runs.map(({ verdict }) => verdict.reward),
    [1, 0],
    JSON.stringify(runs.map(({ verdict }) => verdict)),
  );
  assert.deepEqual(
    [passed, runs[0]?.verdict.tier, runs[0]?.verdict.evidence.modified, runs[1]?.verdict.evidence.no_change],
    [true, "T1", ["add.py"], true],
  );

  await using sandbox = await deliveredSandbox(task, docker, options, t.signal);
  await conceal(sandbox, task, t.signal);
  const { stdout } = await sandbox.exec(
    [
      "sh",
      "-c",
      "git log --all --format=%s; git tag; git cat-file --batch-all-objects --batch | grep -ac secret; git status --porcelain; ls",
    ],
    { signal: t.signal },
  );
  assert.equal(stdout, "The task\n0\nadd.py\nbuilt.so\ntests\n");
});

test("a row whose column alidade says how its tests run apart from the work is T2: helpers come along, and no forged report pays", async (t) => {
  if (!(await need(t, "docker"))) return;
  const apart = { test_cmd: ["python3", "{runner}", "tests/test_add.py"], log_parser: "unittest", tests: ["tests/**"] };
  const task = await loadedRow(t, { alidade: JSON.stringify(apart) });
  const options = { run_id: "run-test-published", owner: await currentOwner(), signal: t.signal };
  await docker.prepare([task.environment], { signal: t.signal });
  const probes = [forgedReport, patchedAssertions];
  const { gradings, reasons } = await examineTask(task, docker, { ...options, times: 1, word: "1", probes });
  assert.deepEqual(
    gradings.map(({ work, reward, tier }) => [work, reward, tier]),
    ["gold", "no-op", "random-edit", "forged-report", "patched-assertions"].map((work) => [work, work === "gold" ? 1 : 0, "T2"]),
  );
  assert.deepEqual(reasons, []);
});

test("a row of SWE-rebench-V2 is built from its recipe and a mirror, without the internet: gold 1, no change 0, no command a step of the build", async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "git"))) return;
  const repositories = await mkdtemp(join(tmpdir(), "alidade-mirrors-"));
  t.after(() => rm(repositories, { recursive: true }));
  const base_commit = await mirrored(repositories);
  const base = await testImage("recipe-base", "RUN true");
  const dockerCommand = (...args: string[]) => promisify(execFile)("docker", args);
  await dockerCommand("tag", base, "swe-rebench-v2/alidade-test:latest");
  t.after(() => dockerCommand("rmi", "swe-rebench-v2/alidade-test:latest"));
  const install = [
    "touch built.so",
    "exit 1",
    "git log --all --format=%s > seen; git tag >> seen",
    "true\nRUN touch /injected\nUSER daemon",
  ];
  const row = {
    base_commit,
    image_name: "swerebenchv2/alidade-absent:1",
    install_config: {
      base_image_name: "alidade-test:latest",
      install,
      test_cmd: ["python3 -m unittest -v tests.test_add"],
      log_parser: "parse_log_django",
    },
  };
  const task = await loadedRow(t, row, { images: "build", repositories });
  const options = { run_id: "run-test-published", owner: await currentOwner(), signal: t.signal };
  await docker.prepare([task.environment], { signal: t.signal });
  const { passed, runs } = await checkTask(task, docker, { ...options, times: 1 });
  assert.deepEqual([passed, runs.map(({ verdict }) => verdict.reward)], [true, [1, 0]], JSON.stringify(runs.map(({ verdict }) => verdict)));
  await using sandbox = await deliveredSandbox(task, docker, options, t.signal);
  const { stdout } = await sandbox.exec(["sh", "-c", "cat seen; git remote; ls -d /injected /alidade*; ls; id -u"], { signal: t.signal });
  assert.equal(stdout, "base\npast\nbase\nadd.py\nbuilt.so\nseen\ntests\n0\n");
});
