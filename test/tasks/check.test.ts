import assert from "node:assert/strict";
import { test } from "node:test";
import { overlay } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { checkTask } from "../../graders/check.ts";
import { deliveredFiles, freshSandbox, grade } from "../../graders/grade.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { keptWork } from "../fakes/kept-work.ts";
import { need } from "../needs.ts";
import { checkAll } from "./check-all.ts";

// That a grading repeats itself is shown in Docker, where it counts.
checkAll(localProcess, 1, "none");

const owner = { run_id: "run-test-check", owner: await currentOwner() };

test("a task whose gold patch does not fix it does not pass", async () => {
  const [task] = await loadTasks("examples/demo/tasks#merge-ranges");
  assert.ok(task?.gold_patch);
  const wrong = { ...task, gold_patch: task.gold_patch.replace("Math.max", "Math.min") };
  const result = await checkTask(wrong, localProcess, { times: 1, signal: new AbortController().signal, ...owner });
  assert.deepEqual([result.passed, result.runs.map((run) => run.verdict.reward)], [false, [0, 0]]);
});

test("a task without a known solution cannot be checked", async () => {
  const [task] = await loadTasks("examples/demo/tasks#merge-ranges");
  assert.ok(task);
  const options = { signal: new AbortController().signal, ...owner };
  await assert.rejects(checkTask({ ...task, gold_patch: null }, localProcess, options), { code: "task_invalid", param: "gold_patch" });
});

test("a test framework planted in the work's node_modules reports nothing", async (t) => {
  if (!(await need(t, "npm-registry"))) return;
  const [task] = await loadTasks("examples/tasks/swe-npm.jsonl#shell-quote-drive-letter");
  assert.ok(task?.grader.kind === "tests");
  const base = await deliveredFiles(task);
  const fake = "module.exports = (name, ...rest) => rest.at(-1)({ equal() {}, same() {}, deepEqual() {}, end() {} });\n";
  const planted = { path: "node_modules/tape/index.js", content: Buffer.from(fake), mode: 0o644 };
  const context = { task, signal: t.signal };
  for (const change of [[], task.grader.protected]) {
    const guarded = { ...task, grader: { ...task.grader, protected: change } };
    const verdict = await grade({
      ...context,
      task: guarded,
      work: await keptWork(base, overlay(base, [planted]), task.environment.workdir),
      fresh: freshSandbox(context, localProcess, owner),
    });
    assert.equal(verdict.reward, 0, JSON.stringify(verdict.evidence));
  }
});
