import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { table } from "../../../view/text/table.ts";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { cli, root, startCli } from "../../fakes/processes/cli.ts";
import { chatHarness } from "../../fakes/rollouts/small-task.ts";

async function fresh(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-command-line-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

const hostile = "\u001b[2J\u001b]0;owned\u0007";

test("what strangers wrote cannot act on the terminal: neither in what is said nor in a table, whose lines stay one each", async () => {
  const { stderr } = await cli(["show", hostile, "--run", hostile]);
  assert.match(stderr, /there is no folder \\x1b\[2J\\x1b\]0;owned\\x07\n$/);
  const lines = table(["task", "reward"], [[`${hostile}\nb/0`, 1]]).split("\n");
  assert.deepEqual([lines.length, lines[2]], [3, "\\x1b[2J\\x1b]0;owned\\x07\\nb/0       1"]);
});

test("progress that is not read ends nothing: the work is done, and its exit code is its own", async (t) => {
  await using engine = await ScriptedEngine.start(() => ({ text: "done" }));
  const command = ["--", process.execPath, chatHarness];
  await using running = startCli(["record", "-e", engine.url, "-o", await fresh(t), ...command], { env: { HARNESS_EXIT: "7" } });
  running.child.stderr?.destroy();
  const { code, stdout } = await running.ended;
  assert.equal(code, 7, stdout);
});

test("an empty flag, as of a variable that is not set, is no 0 and no address of all interfaces", async (t) => {
  const wrong: [string[], RegExp][] = [
    [["serve", "--port", ""], /--port <number>' argument '' is invalid/],
    [["serve", "--control-port", " "], /--control-port <number>' argument ' ' is invalid/],
    [["serve", "--host", ""], /host is ""/],
    [["export", "--format", "trl-dpo", "--min-gap", ""], /min_gap/],
  ];
  const run = await fresh(t);
  await writeFile(join(run, "trajectories.jsonl"), "");
  for (const [args, message] of wrong) {
    const place = args[0] === "export" ? ["--run", run] : ["-e", "http://127.0.0.1:1", "-o", run];
    const { code, stderr } = await cli([...args, ...place]);
    assert.deepEqual([args, code], [args, 2]);
    assert.match(stderr, message);
  }
});

test("a full disk behind standard output is a sentence and a failure", async (t) => {
  if (!existsSync("/dev/full")) return t.skip("there is no /dev/full here");
  const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
    const command = ["-c", '"$0" "$1" config > /dev/full', process.execPath, join(root, "cli/cli.ts")];
    execFile("sh", command, (error, _stdout, stderr) => resolve({ code: error?.code, stderr }));
  });
  assert.deepEqual(
    [code, stderr],
    [1, "alidade: no space left to record at standard output: free some space; nothing recorded so far is lost\n"],
  );
});

test("a --json of the program that is recorded is not ours: the error is a sentence", async (t) => {
  await using engine = await ScriptedEngine.start(() => ({ text: "done" }));
  const { code, stdout, stderr } = await cli(["record", "-e", engine.url, "-o", await fresh(t), "--", "no-such-program-here", "--json"]);
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /there is no program "no-such-program-here"/);
});
