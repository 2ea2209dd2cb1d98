/** Tasks out of commits: their tests run in containers, and a stranger's repository runs nothing where it is read. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import { checkTask } from "../../graders/check.ts";
import { deliveredSandbox } from "../../graders/grade.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { nodeMount } from "../../sandboxes/node-mount.ts";
import { conceal } from "../../sandboxes/set-up.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { GitRepository } from "../fakes/machine/git-repository.ts";
import { cli, jsonOf, root } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

type Made = { tasks: string[]; tried: { state: string; reason?: string; work_runs?: string }[] };

test("a fixing commit becomes a task that is graded out of the work's reach, its gold patch 1 and no change 0, and the agent sees one commit", {
  timeout: 300_000,
}, async (t) => {
  for (const what of ["docker", "git"] as const) if (!(await need(t, what))) return;
  const repository = await GitRepository.make(t);
  const testOf = (...cases: string[]) =>
    `import unittest\nfrom slug import slug\nclass SlugTest(unittest.TestCase):\n${cases.map((one) => `    def ${one}\n`).join("")}`;
  const keeps = 'test_keeps(self): self.assertEqual(slug("a"), "a")';
  const folds = 'test_folds(self): self.assertEqual(slug("A"), "a")';
  await repository.commit("Begin", { "slug.py": "slug = lambda text: text\n", "test_slug.py": testOf(keeps) });
  await repository.commit("Fold letters", { "slug.py": "slug = lambda text: text.lower()\n", "test_slug.py": testOf(keeps, folds) });
  const out = await mkdtemp(join(tmpdir(), "alidade-made-"));
  t.after(() => rm(out, { recursive: true }));
  const how = ["--test", "python3 -m unittest -v", "--parser", "unittest", "--memory-mb", "256", "-o", out];
  const made = jsonOf<Made>(await cli(["tasks", "from-git", repository.folder, ...how, "--json"]));
  assert.deepEqual(
    made.tried.map(({ state, work_runs }) => [state, work_runs]),
    [["kept", "apart"]],
  );
  const [task] = await loadTasks(out);
  const owner = { run_id: "run-test-from-git", owner: await currentOwner() };
  const { passed, runs } = await checkTask(task!, docker, { ...owner, signal: t.signal, times: 1 });
  assert.ok(passed, JSON.stringify(runs));
  assert.equal(runs[0]?.verdict.tier, "T2");

  await using sandbox = await deliveredSandbox(task!, docker, owner, t.signal);
  await conceal(sandbox, task!, t.signal);
  const seen = await sandbox.exec([
    "sh",
    "-c",
    "git rev-list --count --all; git status --porcelain; git show --format=%s --stat | head -1",
  ]);
  assert.equal(seen.stdout, "1\nThe task\n", seen.stderr);
});

test("a repository runs nothing on the machine that reads it, and writes nothing outside of the task", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const image = await ensureBaseImage({ signal: t.signal });
  const [node, modules] = [await nodeMount(), await realpath(join(root, "node_modules"))];
  const mounts = [`${node}:/node`, `${root}:${root}`, `${modules}:${modules}`].flatMap((mount) => ["-v", `${mount}:ro`]);
  const probe = [
    "sh",
    "-c",
    'mkdir /tmp/place && exec /node/bin/node "$0" /tmp/place',
    join(root, "test/fakes/processes/hostile-repository.ts"),
  ];
  const { stdout } = await promisify(execFile)("docker", ["run", "--rm", "--network", "none", "-u", "1000", ...mounts, image, ...probe]);
  const { live, sprung, written, refused, left } = JSON.parse(stdout) as Record<
    "live" | "sprung" | "written" | "refused" | "left",
    string[]
  >;
  for (const trap of ["core.fsmonitor", "filter.x.process", "hook-reference-transaction"])
    assert.ok(live.includes(trap), `${trap} of ${live}`);
  assert.deepEqual(sprung, []);
  assert.deepEqual(left, []);
  assert.deepEqual(written, ["files/.gitattributes", "files/.gitmodules", "files/source.txt", "files/x_test.go", "tests/x_test.go"]);
  assert.match(refused[0]!, /^git clone .* ended with 128: /);
  assert.match(refused[1]!, /transport 'ext' not allowed/);
  assert.match(refused[2]!, /ended with 128: /);
  assert.deepEqual(
    (await readdir(tmpdir())).filter((name) => name === "escaped"),
    [],
  );
});
