import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { freshSandbox, grade } from "../../graders/grade.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { backends } from "../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../sandboxes/sandbox.ts";
import { folderOf, keptWork } from "../fakes/kept-work.ts";
import { need } from "../needs.ts";

const owner = { run_id: "run-test-script", owner: await currentOwner() };
const work = [{ path: "answer.txt", content: Buffer.from("0.75\n"), mode: 0o644 }];

function gradeWith(program: string, grade_seconds = 20) {
  return gradeBy(["node", "-e", program], { grade_seconds });
}

function gradeBy(command: string[], limits: Record<string, number>, backend: SandboxBackend = localProcess) {
  return gradeWork({ command, work, limits, backend });
}

type Graded = {
  command: string[];
  protected?: string[];
  work: TreeFile[];
  base?: TreeFile[];
  limits?: Record<string, number>;
  backend?: SandboxBackend;
};

async function gradeWork({ command, work, base = [], limits = {}, backend = localProcess, ...rest }: Graded) {
  const environment = { files: await folderOf(base) };
  const task = Task.parse({ task_id: "s", instruction: "i", environment, limits, grader: { kind: "script", command, ...rest } });
  const context = { task, signal: new AbortController().signal };
  return grade({ ...context, work: await keptWork(base, work), fresh: freshSandbox(context, backend, owner) });
}

test("the last line is the reward, with its components", async () => {
  const verdict = await gradeWith(
    `const n = Number(require("fs").readFileSync("answer.txt")); console.log("noise"); console.log(JSON.stringify({ reward: n, components: { style: 1, size: { value: null, weight: 0.5 } } }))`,
  );
  assert.deepEqual([verdict.reward, verdict.status, verdict.grader], [0.75, "graded", "script"]);
  assert.deepEqual(verdict.components, { style: { value: 1, weight: 0 }, size: { value: null, weight: 0.5 } });
});

for (const [title, program] of [
  ["no output", ""],
  ["text", 'console.log("1")'],
  ["a reward that is no number", 'console.log(\'{"reward": "1"}\')'],
  ["an unknown field", 'console.log(\'{"rewards": 1, "reward": 1}\')'],
  ["a number that JSON cannot hold", "console.log('{\"reward\": 1e999}')"],
] as const) {
  test(`a script with ${title} as its last line is a grader error without a reward`, async () => {
    const verdict = await gradeWith(program);
    assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [null, "grader_error", "grader_error"]);
  });
}

test("what is protected stands as it was delivered when the script runs", async () => {
  const file = (path: string, text: string) => ({ path, content: Buffer.from(text), mode: 0o644 });
  const base = [file("own.txt", "0\n"), file("conf/a", "0\n")];
  const work = [file("own.txt", "1\n"), file("conf/a", "1\n"), file("conf/b", "1\n")];
  const sums = `const f = require("fs"); const n = (p) => f.existsSync(p) ? Number(f.readFileSync(p)) : 0; console.log(JSON.stringify({ reward: (n("own.txt") + n("conf/a") * 2 + n("conf/b") * 4) / 8 }))`;
  const command = ["node", "-e", sums];
  assert.equal((await gradeWork({ command, base, work })).reward, 7 / 8);
  assert.equal((await gradeWork({ command, base, work, protected: ["conf/**"] })).reward, 1 / 8);
});

const speaksLast = `sh ./program; echo '{"reward": 0}'`;

for (const [title, program] of [
  ["leaves a child that speaks after the script", `(sleep 0.3; echo '{"reward": 1}') & true`],
  ["speaks before the script, and again after it", `echo '{"reward": 1}'; (sleep 0.3; echo '{"reward":1}') & true`],
  ["speaks and ends the script", `echo '{"reward": 1}'; kill -9 $PPID`],
  ["interrupts the script", `echo '{"reward": 1}'; kill -INT $PPID`],
] as const)
  test(`work that ${title} has the reward 0`, async () => {
    const work = [{ path: "program", content: Buffer.from(program), mode: 0o755 }];
    const base = [{ path: "program", content: Buffer.from("true"), mode: 0o755 }];
    const verdict = await gradeWork({ command: ["sh", "-c", speaksLast], work, base });
    assert.deepEqual([verdict.reward, verdict.status], [0, "no_output"], JSON.stringify(verdict));
  });

test("a reward outside of the task's range is refused, and one inside of a declared range is kept", async () => {
  const print = (reward: string) => ["sh", "-c", `echo '{"reward": ${reward}}'`];
  for (const [reward, range, expected] of [
    ["1e300", undefined, null],
    ["-0.5", undefined, null],
    ["-0.5", [-1, 1], -0.5],
    ["-2", [-1, 1], null],
  ] as const) {
    const task = Task.parse({
      task_id: "s",
      instruction: "i",
      ...(range && { reward_range: [...range] }),
      grader: { kind: "script", command: print(reward) },
    });
    const context = { task, signal: new AbortController().signal };
    const verdict = await grade({ ...context, work: await keptWork([], work), fresh: freshSandbox(context, localProcess, owner) });
    assert.equal(verdict.reward, expected, `${reward} of ${range}`);
    if (expected === null) assert.match(verdict.error?.message ?? "", /the reward .* and the task allows .*: set reward_range/);
  }
});

test("work that breaks its grading has the lowest reward of the task's range", async () => {
  const base = [{ path: "program", content: Buffer.from("true"), mode: 0o755 }];
  const hostile = [{ path: "program", content: Buffer.from("kill -9 $PPID"), mode: 0o755 }];
  const task = Task.parse({
    task_id: "s",
    instruction: "i",
    environment: { files: await folderOf(base) },
    reward_range: [-1, 1],
    grader: { kind: "script", command: ["sh", "-c", speaksLast] },
  });
  const context = { task, signal: new AbortController().signal };
  const verdict = await grade({ ...context, work: await keptWork(base, hostile), fresh: freshSandbox(context, localProcess, owner) });
  assert.deepEqual([verdict.reward, verdict.status], [-1, "no_output"]);
});

test("a script that hangs for any work ends as grader_timeout, without a reward", async () => {
  const verdict = await gradeWith("while (true);", 1);
  assert.deepEqual([verdict.reward, verdict.status], [null, "grader_timeout"]);
});

test("work that has its grading script hang has the reward 0, where the script grades what was delivered", async () => {
  const base = [{ path: "program", content: Buffer.from("true"), mode: 0o755 }];
  const work = [{ path: "program", content: Buffer.from("while true; do :; done"), mode: 0o755 }];
  // Half of it is enough for a shell on a busy machine.
  const verdict = await gradeWork({ command: ["sh", "-c", speaksLast], work, base, limits: { grade_seconds: 8 } });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [0, "no_output", "grader_timeout"], JSON.stringify(verdict));
});

const file = (path: string, text: string): TreeFile => ({ path, content: Buffer.from(text), mode: 0o755 });
const runsTheWork = ["sh", "-c", `sh ./program; echo '{"reward": 0.5}'`];

for (const backend of backends)
  test(`work that kills its grading script has the reward 0, where the script grades what was delivered: ${backend.name}`, async (t) => {
    if (backend.name === "docker" && !(await need(t, "docker"))) return;
    const hostile = { command: runsTheWork, work: [file("program", "kill -9 $PPID")], backend };
    const verdict = await gradeWork({ ...hostile, base: [file("program", "true")] });
    assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [0, "no_output", "grader_error"]);
    assert.match(verdict.error?.message ?? "", /the task's own files were graded right after/);
    const broken = await gradeWork({ ...hostile, base: [file("program", "kill -9 $PPID")] });
    assert.deepEqual([broken.reward, broken.status], [null, "grader_error"], "a script that grades nothing at all");
  });

test("a grading that the infrastructure broke once is done again, and one that it breaks for anything has no reward", async () => {
  for (const [broken, reward, status] of [
    [1, 0.5, "graded"],
    [2, null, "infra_error"],
  ] as const) {
    let made = 0;
    const create: SandboxBackend["create"] = async (spec, signal) => {
      if (made++ < broken) throw new AlidadeError("sandbox_unavailable", "no room");
      return localProcess.create(spec, signal);
    };
    const verdict = await gradeWork({ command: runsTheWork, work: [file("program", "true")], backend: { ...localProcess, create } });
    assert.deepEqual([verdict.reward, verdict.status], [reward, status]);
  }
});

for (const backend of backends) {
  test(`work that prints more than is kept hides no verdict: ${backend.name}`, async (t) => {
    if (backend.name === "docker" && !(await need(t, "docker"))) return;
    const flood = "yes noise | head -c 300000";
    const script = `${flood}; ${flood} >&2; echo '{"reward": 0.25}'; echo why >&2`;
    const verdict = await gradeBy(["sh", "-c", script], { output_bytes: 10_000 }, backend);
    assert.deepEqual([verdict.reward, verdict.status], [0.25, "graded"]);
    assert.equal(verdict.evidence.dropped_bytes, 2 * 290_000 + '{"reward": 0.25}\n'.length + "why\n".length);
    assert.match(String(verdict.evidence.output_tail), /noise\nwhy\n$/);
  });
}

test("a sandbox that was lent after its agent and is gone is no doing of the work: there is no reward", async () => {
  const task = Task.parse({
    task_id: "s",
    instruction: "i",
    grading: "shared",
    grader: { kind: "script", command: ["echo", '{"reward":1}'] },
  });
  const context = { task, signal: AbortSignal.timeout(60_000) };
  const lend = () => Promise.reject(new AlidadeError("sandbox_died", "the engine restarted"));
  const verdict = await grade({ ...context, lend, work: await keptWork([], work), fresh: freshSandbox(context, localProcess, owner) });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [null, "infra_error", "sandbox_died"]);

  const kept = { ...context, task: { ...task, keep_processes: true } };
  const taken = await grade({ ...kept, lend, work: await keptWork([], work), fresh: freshSandbox(kept, localProcess, owner) });
  const said = "processes that live there can have ended it, and the task's own files are graded";
  assert.deepEqual([taken.reward, taken.status, taken.error?.code], [0, "no_output", "sandbox_died"], said);
});
