/** `alidade init`; that what it writes works is proven by the guides (guides.test.ts) and by docker/admission.test.ts. */
import assert from "node:assert/strict";
import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";

const scratch = scratchFolder("init");

test("a task has its folder's name, in either language", async () => {
  for (const language of ["python", "node"]) {
    const folder = join(scratch, `fix-${language}`);
    const made = await cli(["init", "task", folder, "--language", language, "--json"]);
    assert.deepEqual(jsonOf<{ files: string[] }>(made).files.includes(join(folder, "task.yaml")), true, made.stderr);
    assert.match(await readFile(join(folder, "task.yaml"), "utf8"), new RegExp(`^task_id: fix-${language}$`, "m"));
  }
});

test("a program's task is graded by cases, and holds", async () => {
  const folder = join(scratch, "fix-program");
  await cli(["init", "program", folder]);
  assert.match(await readFile(join(folder, "task.yaml"), "utf8"), /^task_id: fix-program$/m);
  const held = await cli(["check", folder, "--times", "1", "--sandbox", "process", "--unsafe-host", "--json"]);
  assert.deepEqual([held.code, jsonOf<{ checks: { outcome: string }[] }>(held).checks[0]?.outcome], [0, "holds"], held.stderr);
});

test("a folder's name that no task can have leaves the skeleton's own", async () => {
  const folder = join(scratch, "my task");
  await cli(["init", "task", folder]);
  assert.match(await readFile(join(folder, "task.yaml"), "utf8"), /^task_id: clamp$/m);
});

test("a run holds a harness and a task, and names the command that runs it", async () => {
  const folder = join(scratch, "run");
  const { code, stdout } = await cli(["init", "run", folder]);
  assert.equal(code, 0);
  assert.deepEqual((await readdir(folder)).sort(), ["agent.py", "run.yaml", "tasks"]);
  assert.match(stdout, /`alidade run -c .*run\.yaml` runs it/);
});

test("no file is replaced, also not one behind a link, and then none is written", async () => {
  const folder = join(scratch, "twice");
  await cli(["init", "harness", folder]);
  const again = await cli(["init", "run", folder]);
  assert.deepEqual([again.code, /agent\.py is there already: name another folder/.test(again.stderr)], [2, true], again.stderr);
  assert.deepEqual(await readdir(folder), ["agent.py"]);
  await symlink("nowhere", join(scratch, "task.yaml"));
  assert.equal((await cli(["init", "task", scratch])).code, 2);
});

test("what init does not know is answered with what it knows", async () => {
  const { code, stderr } = await cli(["init", "tusk", join(scratch, "tusk")]);
  assert.deepEqual([code, stderr], [2, "alidade: init knows no tusk: give task, program, harness, run\n"]);
});
