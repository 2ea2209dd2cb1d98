import assert from "node:assert/strict";
import { test } from "node:test";
import { freshSandbox, grade } from "../../graders/grade.ts";
import { currentOwner } from "../../sandboxes/owner.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { Task } from "../../schema/task.ts";

const owner = { run_id: "run-test-script", owner: await currentOwner() };
const work = [{ path: "answer.txt", content: Buffer.from("0.75\n"), mode: 0o644 }];

function gradeWith(program: string, grade_seconds = 20) {
  const task = Task.parse({
    task_id: "s",
    instruction: "i",
    limits: { grade_seconds },
    grader: { kind: "script", command: ["node", "-e", program] },
  });
  const context = { task, signal: new AbortController().signal };
  return grade({ ...context, base: [], work, fresh: freshSandbox(context, localProcess, owner) });
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

test("a script that hangs ends as grader_timeout", async () => {
  const verdict = await gradeWith("while (true);", 1);
  assert.deepEqual([verdict.reward, verdict.status], [null, "grader_timeout"]);
});
