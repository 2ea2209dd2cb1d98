/** What Polar's evaluators become, run by a real bash and git in folders as a grading sandbox has them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { gradingOf } from "../../../service/polar/evaluators.ts";
import { prepareLines } from "../../../service/polar/prepare.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { need } from "../../needs.ts";

const scratch = scratchFolder("polar-evaluators");
let places = 0;

/** A repository at its first commit, and the agent's copy of it. */
async function repository(): Promise<{ repo: string; workspace: string }> {
  const place = join(scratch, `${places++}`);
  const [repo, workspace] = [join(place, "testbed"), join(place, "workspace")];
  await mkdir(repo, { recursive: true });
  await writeFile(join(repo, "answer.txt"), "41\n");
  await bash("git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm one", repo);
  await cp(repo, workspace, { recursive: true });
  return { repo, workspace };
}

const command = (workdir: string, config: object): string[] => {
  const grading = gradingOf("test_on_output", { config: config as Record<string, unknown>, workdir, evalPrepare: "" });
  assert.ok(grading);
  return (grading.grader as { command: string[] }).command;
};

async function rewardOf([program = "", ...args]: string[]): Promise<number | null> {
  const { stdout } = await run(program, args);
  const last = stdout.trim().split("\n").at(-1) ?? "";
  return last.startsWith("{") ? JSON.parse(last).reward : null;
}

test("test_on_output pays where the log says of each expected test, and of no other, what is expected", async (t) => {
  if (!(await hasTools(t))) return;
  const { workspace } = await repository();
  await writeFile(join(workspace, "answer.txt"), "42\n");
  const pays = (test_command: string, expected_output_json: unknown) =>
    rewardOf(command(workspace, { repo_dir: workspace, test_command, expected_output_json }));
  const expected = { "tests/a.py::TestA::test_one": "PASSED", test_two: "SKIPPED" };
  const log = "PASSED  tests/x/a.py::TestA::test_one - 0.1 s\\nSKIPPED test_two\\n";
  assert.equal(await pays(`printf '${log}'`, expected), 1);
  assert.equal(await pays(`printf '\\033[32m${log}' >&2; false`, JSON.stringify(expected)), 1, "in colour, on stderr, with an exit code");
  assert.equal(await pays(`printf '${log}FAILED test_three\\n'`, expected), 0, "another test is one too many");
  assert.equal(await pays(`printf '${log}FAILED test_two\\n'`, expected), 0, "the last word of a test stands");
  assert.equal(await pays("true", {}), 0, "no test is none that passed");
  assert.equal(await pays(`echo '{"reward": 1}'; printf '${log}'`, { test_two: "PASSED" }), 0, "what the tests print is no verdict");
  assert.equal(await pays("grep -q 42 answer.txt && echo PASSED test_two", { test_two: "PASSED" }), 1, "run in the repository");
});

test("a patch of the agent's folder is applied to the repository, without what is excluded", async (t) => {
  if (!(await hasTools(t))) return;
  const { repo, workspace } = await repository();
  const config = {
    repo_dir: repo,
    patch_command: `cd '${workspace}' && git add -A && git diff --cached --binary`,
    test_command: "ls; grep -q 42 answer.txt && [ ! -e .codex ] && echo PASSED answer",
    expected_output_json: { answer: "PASSED" },
    exclude_patterns: [".codex/**"],
  };
  assert.equal(await rewardOf(command(workspace, config)), 0, "an empty patch pays nothing");
  await writeFile(join(workspace, "answer.txt"), "42\n");
  await writeFile(join(workspace, "new.txt"), "also\n");
  await mkdir(join(workspace, ".codex"));
  await writeFile(join(workspace, ".codex/log"), "mine\n");
  assert.equal(await rewardOf(command(workspace, config)), 1);
  assert.equal(await readFile(join(repo, "new.txt"), "utf8"), "also\n");
  // A repository that is another one by now takes no patch.
  await writeFile(join(repo, "answer.txt"), "40\n");
  assert.equal(await rewardOf(command(workspace, config)), 0);
  assert.equal(await rewardOf(command(workspace, { ...config, patch_command: "false" })), null, "no patch at all is no verdict");
});

test("a step of prepare is tried as often as it says, and the first one that fails for good ends it", async (t) => {
  if (!(await hasTools(t))) return;
  const place = join(scratch, `${places++}`);
  await mkdir(place);
  const step = (command: string, max_attempts = 1) => ({ type: "exec" as const, command, max_attempts, retry_backoff_seconds: 0 });
  const counted = "echo x >> tries; [ $(wc -l < tries) -ge 3 ]";
  assert.equal((await bash(prepareLines([step(counted, 3), step("echo done > end")]), place)).code, 0);
  assert.equal(await readFile(join(place, "tries"), "utf8"), "x\nx\nx\n");
  assert.equal(await readFile(join(place, "end"), "utf8"), "done\n");
  await writeFile(join(place, "tries"), "");
  assert.notEqual((await bash(prepareLines([step(counted, 2), step("echo again > end")]), place)).code, 0);
  assert.equal(await readFile(join(place, "end"), "utf8"), "done\n", "what comes behind it is not run");
});

async function hasTools(t: TestContext): Promise<boolean> {
  return need(t, "git");
}

const bash = (script: string, cwd: string) => run("bash", ["-c", script], cwd);

function run(program: string, args: string[], cwd = scratch): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd }, (error, stdout) => resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout }));
  });
}
