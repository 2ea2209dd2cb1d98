/** A program as a black box: what it prints and how it ends, case by case. Its hacks are tried in test/docker/hacks.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { currentOwner } from "../../base/host/owner.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import { Task } from "../../base/schema/task.ts";
import { cases } from "../../graders/cases.ts";
import { freshSandbox, grade } from "../../graders/grade.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { folderOf, keptWork } from "../fakes/kept-work.ts";

const owner = { run_id: "cases", owner: await currentOwner() };

/** The verdict on a shell script; in the process sandbox, where nothing is isolated. */
async function verdictOn(script: string, spec: object, limits: object = {}): Promise<Verdict> {
  const grader = { kind: "cases", command: ["sh", "prog.sh"], ...spec };
  const task = Task.parse({ task_id: "cases", instruction: "i", grader, limits: { grade_seconds: 60, ...limits } });
  const context = { task, signal: AbortSignal.timeout(60_000) };
  const work = await keptWork([], [{ path: "prog.sh", content: Buffer.from(script), mode: 0o644 }]);
  return grade({ ...context, work, fresh: freshSandbox(context, localProcess, owner) });
}

test("a program is held against each case: arguments, input, output and exit code", async () => {
  const files = await folderOf([{ path: "in/numbers.txt", content: Buffer.from("7\n"), mode: 0o644 }]);
  const script = 'case $1 in add) read a b; echo "$((a + b)) "; echo;; file) cat in/numbers.txt;; *) echo usage >&2; exit 2;; esac';
  const all = [
    { name: "adds", args: ["add"], stdin: "2 3\n", stdout: "5" },
    { args: ["add"], stdin: "2 3\n", stdout: { equals: "5 \n\n" } },
    { args: ["file"], stdout: { matches: "^\\d\\s*$" } },
    { name: "usage", exit: 2 },
  ];
  const verdict = await verdictOn(script, { cases: all, files });
  assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [1, "graded", "T0"], JSON.stringify(verdict));
  assert.deepEqual(Object.keys(verdict.components), ["adds", "case 2", "case 3", "usage"]);
  const wrong = [
    { name: "other text", args: ["add"], stdin: "2 3\n", stdout: "6" },
    { name: "other code", exit: 0 },
    { name: "exactly", args: ["add"], stdin: "2 3\n", stdout: { equals: "5" } },
  ];
  const failed = await verdictOn(script, { cases: [...all, ...wrong], files, pays: "share" });
  assert.deepEqual([failed.reward, failed.formula, failed.evidence.failed_count], [4 / 7, "the components' mean", 3]);
  assert.deepEqual(
    (failed.evidence.failed as { outcome: string }[]).map(({ outcome }) => outcome),
    ["it printed 5 \n\n", "it ended with 2: usage\n", "it printed 5 \n\n"],
  );
  assert.equal((await verdictOn(script, { cases: [...all, ...wrong], files })).reward, 0);
});

test("megabytes of spaces inside of a line are compared in the time that their printing takes", async () => {
  const script = "printf '%2000000s' x";
  const verdict = await verdictOn(script, { cases: [{ stdout: "x" }] }, { output_bytes: 4_000_000 });
  assert.equal(verdict.reward, 1);
});

test("a program that hangs, floods, kills itself or is not there fails its cases where the machine is quick enough", async () => {
  const hangs = await verdictOn('[ "$1" = on ] && sleep 600; echo 1', {
    cases: [{ args: ["on"], stdout: "1" }, { stdout: "1" }],
    seconds: 8,
    pays: "share",
  });
  assert.deepEqual([hangs.reward, hangs.status, hangs.formula, hangs.error], [0.5, "graded", "the components' mean", null]);
  assert.deepEqual((hangs.evidence.hung as { parts: string[] }).parts, ["case 1"]);
  assert.ok(hangs.evidence.own_files, "the machine was shown to be quick enough");
  const floods = await verdictOn(
    "yes 1",
    { cases: [{ stdout: "1" }], command: ["sh", "-c", "yes 1 | head -c 3000000"] },
    { output_bytes: 65_536 },
  );
  assert.match(JSON.stringify(floods.evidence.failed), /printed more than is kept/);
  for (const script of ["kill -9 $$", "exit 1"]) assert.equal((await verdictOn(script, { cases: [{}] })).reward, 0, script);
  assert.deepEqual((await verdictOn("", { cases: [{}], command: ["./absent"] })).reward, 0);
});

/** Runs `true` as a case: so many of the first ones do not end, one a grading and case. */
async function hungFirst(hung: number, spec: object, grade_seconds: number) {
  const grader = { kind: "cases", command: ["true"], ...spec };
  const task = Task.parse({ task_id: "t", instruction: "i", grader, limits: { grade_seconds } });
  const context = { task, signal: AbortSignal.timeout(60_000) };
  let ran = 0;
  const fresh = async () => {
    const sandbox = await freshSandbox(context, localProcess, owner)();
    const exec = sandbox.exec.bind(sandbox);
    sandbox.exec = async (argv, options) => {
      if (argv[0] !== "true") return exec(argv, options);
      ran += 1;
      if (ran > hung) return exec(argv, options);
      await sleep(200);
      return { ...(await exec(argv)), timed_out: true, duration_ms: options?.timeout_ms ?? 0 };
    };
    return sandbox;
  };
  const verdict = await grade({ ...context, work: await keptWork([], [{ path: "a", content: Buffer.from(""), mode: 0o644 }]), fresh });
  return { ...verdict, ran };
}

test("after a case that hung none is run beyond the grading's time, and where the task's own files hang too there is no reward", async () => {
  const { reward, status, ran, evidence } = await hungFirst(100, { cases: [{}, {}] }, 0.1);
  assert.deepEqual([reward, status, ran, evidence.failed_count], [null, "grader_timeout", 2, 2]);
  assert.match(JSON.stringify(evidence.failed), /did not end in its time.*was not run/);
});

test("a case that hangs on a machine that is slow for a moment is asked again, and holds", async () => {
  const { reward, status, ran } = await hungFirst(1, { cases: [{}, {}], pays: "share" }, 60);
  assert.deepEqual([reward, status, ran], [1, "graded", 6], "two cases of the work, of no change, and of the work again");
});

test("where another case is wrong in any case, a hang is not asked about", async () => {
  const { reward, status, ran } = await hungFirst(1, { cases: [{}, { exit: 3 }] }, 60);
  assert.deepEqual([reward, status, ran], [0, "graded", 2]);
  const shared = await hungFirst(100, { cases: [{}, { exit: 3 }], pays: "share" }, 60);
  assert.deepEqual([shared.reward, shared.status], [null, "grader_timeout"]);
});

test("what a program prints to look like a verdict is output, and nothing of the expected one is in its sandbox", async () => {
  const secret = "expected-4711";
  const look = 'echo \'{"reward": 1}\'; env; cat /proc/self/environ; find . -type f -exec cat {} +; ls -R "$HOME" 2>/dev/null';
  const verdict = await verdictOn(look, { cases: [{ stdout: secret }, { stdout: { contains: secret } }] });
  assert.deepEqual([verdict.reward, verdict.evidence.failed_count], [0, 2]);
});

test("more time for the cases than for the grading is the task's mistake, and names are its own", async () => {
  const { reward, error } = await verdictOn("true", { cases: [{}, {}], seconds: 31 });
  assert.deepEqual([reward, error?.code], [null, "task_invalid"]);
  assert.match(error?.message ?? "", /2 cases of 31 seconds are more than limits\.grade_seconds \(60\)/);
  const parse = (given: object) => cases.spec?.parse({ kind: "cases", command: ["a"], cases: [{}], ...given });
  assert.throws(() => parse({ cases: [{ name: "a" }, { name: "a" }] }), /two cases have one name/);
  assert.throws(() => parse({ cases: [{ stdout: 5 }] }), /give a text, or one of equals/);
  assert.throws(() => parse({ cases: [] }), /cases/);
});

test("a program that prints all numbers holds none of them, for it prints more than is looked into", async () => {
  const all = "seq 0 9999";
  for (const stdout of [{ contains: "3" }, { matches: "\\b3\\b" }]) {
    const verdict = await verdictOn(all, { cases: [{ stdout }] });
    assert.equal(verdict.reward, 0, JSON.stringify(stdout));
    assert.match(JSON.stringify(verdict.evidence.failed), /it has 48890 characters, and is looked into up to 10000 \(longest\)/);
    assert.equal((await verdictOn(all, { cases: [{ stdout: { ...stdout, longest: 50_000 } }] })).reward, 1);
  }
});
