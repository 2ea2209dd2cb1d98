/** What an agent sees of a published task's repository, and that its work is graded on the repository as it was delivered. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryLayers } from "../../../base/files/layer.ts";
import { currentOwner } from "../../../base/host/owner.ts";
import type { Task } from "../../../base/schema/task.ts";
import { checkTask } from "../../../graders/check.ts";
import { deliveredFiles, deliveredSandbox, freshSandbox, grade } from "../../../graders/grade.ts";
import { keepSetUp } from "../../../graders/work/set-up-layer.ts";
import { takeWork } from "../../../graders/work/work.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import { conceal } from "../../../sandboxes/set-up.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { need } from "../../needs.ts";

const owner = { run_id: "run-test-concealed", owner: await currentOwner() };

/** A repository with a commit before and one after the base, whose tests were brought in with the fix. */
async function repository(t: TestContext): Promise<{ folder: string; base: string }> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-repository-"));
  t.after(() => rm(folder, { recursive: true }));
  const identity = { GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b" };
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: folder, encoding: "utf8", env: { ...process.env, ...identity } }).trim();
  const commit = async (files: Record<string, string>, message: string): Promise<string> => {
    for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text);
    git("add", "-A");
    git("commit", "-qm", message);
    return git("rev-parse", "HEAD");
  };
  await mkdir(join(folder, "tests"));
  git("init", "-q", ".");
  await commit({ "add.sh": "# the secret of the past\n", ".gitignore": "*.o\n" }, "first");
  const base = await commit({ "add.sh": "echo $(($1 - $2))\n", "tests/run.sh": "check one 1 0 1\n" }, "base");
  await commit({ "add.sh": "echo $(($1 + $2))\n" }, "the secret of the fix");
  git("checkout", "-q", base);
  await writeFile(join(folder, "tests/run.sh"), "check one 1 0 1\ncheck two 1 1 2\n");
  await writeFile(join(folder, "built.o"), "ignored\n");
  return { folder, base };
}

const diff = (path: string, body: string) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n${body}`;
const run = `check() { [ "$(sh add.sh $2 $3)" = $4 ] && echo "test $1 ... ok" || echo "test $1 ... FAILED"; }; . ./tests/run.sh`;

async function taskIn(t: TestContext): Promise<Task> {
  const { folder, base } = await repository(t);
  const row = {
    instance_id: "owner__add-1",
    repo: "owner/add",
    base_commit: base,
    problem_statement: "add.sh subtracts.",
    image_name: "owner/add:1",
    patch: diff("add.sh", "@@ -1 +1 @@\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n"),
    test_patch: diff("tests/run.sh", "@@ -1 +1,2 @@\n check one 1 0 1\n+check two 1 1 2\n"),
    FAIL_TO_PASS: ["two"],
    PASS_TO_PASS: ["one"],
    install_config: { test_cmd: run, log_parser: "parse_log_cargo" },
  };
  const file = join(await mkdtemp(join(tmpdir(), "alidade-rows-")), "rows.jsonl");
  t.after(() => rm(join(file, ".."), { recursive: true }));
  await writeFile(file, JSON.stringify(row));
  const [task] = await loadTasks(file);
  assert.ok(task);
  // Sandboxes in processes have no image, so this folder takes its place. They run as the user of this machine.
  return { ...task, environment: { ...task.environment, files: folder, user: "agent", writable: "workdir", platform: null, image: null } };
}

test("the known solution of a published row earns 1 and no change 0, with tests that the image already had", async (t) => {
  if (!(await need(t, "git"))) return;
  const task = await taskIn(t);
  const { runs, passed } = await checkTask(task, localProcess, { ...owner, times: 1, signal: t.signal });
  assert.deepEqual([passed, runs.map(({ verdict }) => verdict.reward)], [true, [1, 0]], JSON.stringify(runs[0]?.verdict));
});

test("the agent sees one commit and no hidden test, and its own history does not cross to the grader", async (t) => {
  if (!(await need(t, "git"))) return;
  const task = await taskIn(t);
  await using kept = await temporaryLayers();
  await using sandbox = await deliveredSandbox(task, localProcess, owner, t.signal);
  const delivered = await deliveredFiles(task);
  const setUp = await keepSetUp(sandbox, task, delivered, kept.folder, t.signal);
  await conceal(sandbox, task, t.signal);
  const shell = async (script: string): Promise<string> => (await sandbox.exec(["sh", "-c", script], { signal: t.signal })).stdout.trim();
  assert.equal(await shell("git log --all --format=%s"), "The task");
  assert.equal(await shell("git cat-file --batch-all-objects --batch | grep -ac secret"), "0");
  assert.equal(await shell("git status --porcelain; cat tests/run.sh built.o"), "check one 1 0 1\nignored");
  // It mends the program, commits, and leaves a hook for the next git.
  await shell(
    `echo 'echo $(($1 + $2))' > add.sh; printf 'touch hooked' > .git/hooks/post-checkout; git config a.b c; git -c user.name=a -c user.email=a commit -qam mine`,
  );
  await sandbox.freeze();
  const work = await takeWork(sandbox, task, delivered, kept.folder, t.signal, setUp);
  assert.deepEqual(
    work.changes.filter(({ path }) => path.includes(".git/")),
    [],
  );
  const context = { task, signal: t.signal, work };
  const verdict = await grade({ ...context, fresh: freshSandbox(context, localProcess, { ...owner, setUp }) });
  assert.deepEqual([verdict.reward, verdict.evidence.modified], [1, ["add.sh"]], JSON.stringify(verdict));
});
