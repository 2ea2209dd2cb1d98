/** What a command inside gets, and what comes back of it. */

import assert from "node:assert/strict";
import { isIsolated } from "../../base/schema/rollout.ts";
import { ofSandbox, type SandboxCheck, said } from "./in-sandbox.ts";

export const commandChecks: readonly SandboxCheck[] = [
  ofSandbox("a command's output and exit code are its own, and its words are no shell's", async (sandbox) => {
    const { stdout, stderr, exit_code } = await sandbox.exec(["sh", "-c", 'printf %s "$1"; echo no >&2; exit 3', "sh", "$HOME; *"]);
    assert.deepEqual([stdout, stderr, exit_code], ["$HOME; *", "no\n", 3]);
  }),
  ofSandbox("a command starts in the workdir, or in the folder that it is given", async (sandbox) => {
    assert.equal((await sandbox.exec(["pwd"])).stdout, `${sandbox.path("/work")}\n`);
    assert.equal((await sandbox.exec(["pwd"], { cwd: "/home/agent" })).stdout, `${sandbox.path("/home/agent")}\n`);
  }),
  ofSandbox(
    "a command has the variables of its sandbox and its own, HOME, and none of this process",
    async (sandbox) => {
      const { stdout } = await sandbox.exec(["sh", "-c", 'echo "$OF_SANDBOX|$OF_COMMAND|$HOME"'], { env: { OF_COMMAND: "grüß dich" } });
      assert.equal(stdout, `of the sandbox|grüß dich|${sandbox.path("/home/agent")}\n`);
      const ours = Object.keys(process.env).filter((name) => !usual.test(name));
      const names = (await said(sandbox, "env")).split("\n").map((line) => line.split("=")[0] ?? "");
      assert.deepEqual(
        names.filter((name) => ours.includes(name)),
        [],
        "variables of this process",
      );
    },
    { env: { OF_SANDBOX: "of the sandbox" } },
  ),
  ofSandbox("a command reads its input to the end", async (sandbox) => {
    const { stdout, exit_code } = await sandbox.exec(["sh", "-c", "cat; echo end"], { stdin: "first\nsecond" });
    assert.deepEqual([stdout, exit_code], ["first\nsecondend\n", 0]);
    assert.equal((await sandbox.exec(["cat"], { timeout_ms: 20_000 })).exit_code, 0, "without input it finds the end at once");
  }),
  ofSandbox("a command runs as the user that it names: the agent is not root, and two graders are two users", async (sandbox, backend) => {
    if (!isIsolated(backend.capabilities.isolation)) return;
    const idOf = async (user?: "root" | "judge" | "work") => (await sandbox.exec(["id", "-u"], user ? { user } : {})).stdout.trim();
    const ids = [await idOf(), await idOf("judge"), await idOf("work")];
    assert.equal(await idOf("root"), "0");
    assert.ok(!ids.includes("0"), `agent, judge and work have the ids ${ids.join(", ")}`);
    assert.equal(new Set(ids).size, 3, `agent, judge and work have the ids ${ids.join(", ")}`);
  }),
  ofSandbox("a command that is not there has exit code 127 and its name on stderr", async (sandbox) => {
    const { exit_code, stderr } = await sandbox.exec(["no-such-command-here"]);
    assert.deepEqual([exit_code, stderr.includes("no-such-command-here")], [127, true], stderr);
  }),
  ofSandbox("a command that takes too long is killed with all that it started, and output beyond its limit is counted", async (sandbox) => {
    const { timed_out, exit_code } = await sandbox.exec(["sh", "-c", "sleep 600 & sleep 600"], { timeout_ms: 500 });
    assert.deepEqual([timed_out, exit_code], [true, null]);
    const { stdout, dropped_bytes } = await sandbox.exec(["sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x"], { max_output_bytes: 1_000 });
    assert.deepEqual([stdout.length, dropped_bytes], [1_000, 4_000]);
  }),
  ofSandbox("of too much output the end is kept where that is asked for", async (sandbox) => {
    const script = "head -c 5000 /dev/zero | tr '\\0' x; echo last";
    const { stdout, dropped_bytes } = await sandbox.exec(["sh", "-c", script], { max_output_bytes: 1_000, keep_output: "end" });
    assert.deepEqual([stdout, dropped_bytes], [`${"x".repeat(995)}last\n`, 4_005]);
  }),
  ofSandbox("a deadline that fires ends a command as its time limit does, and a signal rejects with `cancelled`", async (sandbox) => {
    const { timed_out } = await sandbox.exec(["sleep", "600"], { deadline: AbortSignal.timeout(300) });
    assert.equal(timed_out, true);
    await assert.rejects(sandbox.exec(["sleep", "600"], { signal: AbortSignal.timeout(300) }), { code: "cancelled" });
    assert.equal((await sandbox.exec(["true"])).exit_code, 0, "the sandbox goes on");
  }),
  ofSandbox("what a command leaves in the background does not hold it up", async (sandbox) => {
    const { stdout, exit_code, timed_out } = await sandbox.exec(["sh", "-c", "sleep 600 & echo started"], { timeout_ms: 30_000 });
    assert.deepEqual([stdout, exit_code, timed_out], ["started\n", 0, false]);
  }),
];

/** Variables that each system has of its own. */
const usual = /^(PATH|HOME|PWD|OLDPWD|SHLVL|_|LANG|LC_\w+|TZ|TERM|USER|LOGNAME|SHELL|HOSTNAME|TMPDIR)$/;
