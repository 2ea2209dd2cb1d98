/** `alidade show <rollout> --diff`: what a rollout changed, against its task's own files. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { PathDiff } from "../../view/work-diff.ts";
import { ScriptedEngine, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { runFile, writeTask } from "../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("work-diff");

const work = `
printf 'one\\nTWO\\nthree\\n' > kept.txt
rm gone.txt
echo new > done.txt
ln -s done.txt link
printf '\\000\\377' > bytes
chmod +x mode.sh
touch "$(printf 'two\\n--- lines\\033[2J')"
ln -s "$(printf '\\033[2J\\n+++ b/forged')" outside
`;

function play({ messages }: WireRequest) {
  const isFirst = !messages.some(({ role }) => role === "assistant");
  return isFirst ? { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: work }) }] } : { text: "done" };
}

test("what a rollout changed is a diff that git applies to the task's files, and what is no text is named", async () => {
  const task = await writeTask(scratch, "a");
  const files = { "kept.txt": "one\ntwo\nthree\n", "gone.txt": "old\n", "mode.sh": "true\n" };
  for (const [name, text] of Object.entries(files)) await writeFile(join(task, "files", name), text);
  await using engine = await ScriptedEngine.start(play);
  await writeFile(join(scratch, "run.yaml"), `${runFile({ engine: engine.url, tasks: ["a"] }).replace("samples: 2", "samples: 1")}`);
  const ran = await cli(["run", "-c", join(scratch, "run.yaml"), "-o", join(scratch, "runs"), "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  const { run } = jsonOf<{ run: string }>(ran);

  const told = await cli(["show", "a/0", "--run", run, "--diff", "--json"]);
  assert.equal(told.code, 0, told.stderr);
  const { paths } = jsonOf<{ paths: PathDiff[] }>(told);
  const found = Object.fromEntries(paths.map(({ path, change, diff, note }) => [path.split("/").at(-1), [change, diff !== null, note]]));
  assert.deepEqual(found, {
    bytes: ["added", false, "2 bytes, which are no short text"],
    "done.txt": ["added", true, null],
    "gone.txt": ["deleted", true, null],
    "kept.txt": ["modified", true, null],
    link: ["added", false, "a link to done.txt"],
    "mode.sh": ["modified", false, "its mode or owner alone"],
    "two\n--- lines\u001b[2J": ["added", false, "its name holds characters that a diff cannot"],
    outside: ["added", false, "a link to \u001b[2J\n+++ b/forged"],
  });

  const shown = await cli(["show", "a/0", "--run", run, "--diff"]);
  assert.equal(shown.code, 0, shown.stderr);
  assert.ok(!shown.stdout.includes("\u001b"), "an agent's names move no cursor");
  assert.doesNotMatch(shown.stdout, /^(?:\+\+\+ b.forged|--- lines)/m, "and begin no lines");
  const before = join(scratch, "before");
  await mkdir(before);
  for (const [name, text] of Object.entries(files)) await writeFile(join(before, name), text);
  await writeFile(join(scratch, "work.diff"), shown.stdout);
  await promisify(execFile)("git", ["apply", join(scratch, "work.diff")], { cwd: before });
  assert.equal(await readFile(join(before, "kept.txt"), "utf8"), "one\nTWO\nthree\n");
  assert.equal(await readFile(join(before, "done.txt"), "utf8"), "new\n");
  await assert.rejects(readFile(join(before, "gone.txt")), { code: "ENOENT" });

  await rm(join(run, "blobs"), { recursive: true });
  const lost = await cli(["show", "a/0", "--run", run, "--diff"]);
  assert.notEqual(lost.code, 0);
  assert.match(lost.stderr, /there is no .*blobs\/[0-9a-f]{64}\.tar\.gz/);
});
