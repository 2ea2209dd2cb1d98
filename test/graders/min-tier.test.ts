import assert from "node:assert/strict";
import { test } from "node:test";
import type { Tier } from "../../base/schema/rollout.ts";
import { Task } from "../../base/schema/task.ts";
import type { Grader } from "../../graders/grader.ts";
import { checkTier } from "../../graders/min-tier.ts";
import { graders } from "../../graders/registry.ts";
import { checkGrading } from "../../graders/shared/check-grading.ts";
import { docker } from "../../sandboxes/docker.ts";
import { localProcess } from "../../sandboxes/process.ts";

const task = (task_id: string, parser: string, work = "workdir", work_runs?: "together", command = ["x"]) =>
  Task.parse({
    task_id,
    instruction: "i",
    environment: { work },
    grader: { kind: "tests", command, parser, work_runs, tests: "t", fail_to_pass: ["a"], pass_to_pass: [] },
  });
const sealed = task("sealed", "node-test");

/** Those that are refused. */
function below(tasks: Task[], least: Tier | null): string[] {
  return tasks.flatMap((one) => {
    try {
      checkTier(one, least, docker);
      return [];
    } catch {
      return [one.task_id];
    }
  });
}

test("a task that is graded below the least tier of a run is refused with its name", () => {
  const tasks = [sealed, task("log", "pytest"), task("all", "node-test", "layer"), task("one", "tape", "workdir", "together")];
  assert.deepEqual(below(tasks, "T2"), ["log", "all", "one"]);
  assert.deepEqual(below(tasks, null), []);
  assert.throws(() => checkTier(task("log", "pytest"), "T2", docker), {
    code: "config_invalid",
    param: "min_tier",
    message: "min_tier is T2, and the task log is graded below it (tests: T1). Grade it in another way, or lower min_tier",
  });
});

test("pytest and unittest are T2 apart from the work, where our runner runs them by a Python outside of the workdir", () => {
  const runs = (...command: string[]) => task("log", "pytest", "workdir", undefined, command);
  const safe = [
    runs("python3", "{runner}", "tests"),
    task("u", "unittest", "workdir", undefined, ["/usr/bin/python3", "{runner}", "tests"]),
  ];
  assert.deepEqual(below(safe, "T2"), []);
  const others = [
    runs("pytest", "-rA"),
    runs(".venv/bin/python", "{runner}", "tests"),
    runs("/work/venv/bin/python", "{runner}", "tests"),
    runs("bash", "start.sh", "{runner}", "tests"),
    runs("sh", "-c", "./set-up; python3 {runner} tests"),
    runs("python3", "--check-hash-based-pycs=./x", "{runner}"),
  ];
  assert.equal(below(others, "T2").length, others.length);
});

test("in the process sandbox every tier is T0", () => {
  assert.throws(() => checkTier(sealed, "T1", localProcess), {
    message: /sealed is graded below it \(tests: T0\); a sandbox that isolates nothing gives T0/,
  });
  assert.doesNotThrow(() => checkTier(sealed, "T0", localProcess));
});

test("what is graded in the agent's own sandbox is T0, and a verifier of its own stays what it is", () => {
  const shared = { ...sealed, grading: "shared" as const };
  assert.throws(() => checkTier(shared, "T1", docker), { message: /sealed is graded below it \(tests: T0\)/ });
  const harbor = { kind: "harbor", tests: null, verifier: { environment: {}, limits: {} } };
  const apart = Task.parse({ task_id: "apart", instruction: "i", grading: "shared", grader: harbor });
  assert.doesNotThrow(() => checkTier(apart, "T1", docker));
  assert.throws(() => checkTier({ ...apart, grader: { ...harbor, verifier: null } }, "T1", docker), {
    message: /apart is graded below it \(harbor: T0\)/,
  });
});

test("a task that cannot be graded in the agent's own sandbox is refused with the reason", () => {
  const shared = { ...sealed, grading: "shared" as const };
  assert.doesNotThrow(() => checkGrading(shared));
  const concealed = { ...shared, environment: { ...shared.environment, conceal: ["rm", "-r", "hidden"] } };
  assert.throws(() => checkGrading(concealed), {
    param: "grading",
    message: /^grading is shared, but environment\.conceal .* grade it fresh$/,
  });
  assert.doesNotThrow(() => checkGrading({ ...concealed, grading: "fresh" }));
  assert.doesNotThrow(() => checkGrading({ ...shared, steps: [] }));
});

test("a grader that tells no tier is below any", () => {
  const own: Grader = { name: "own", title: "t", grade: () => Promise.reject(new Error("never")) };
  const plain = Task.parse({ task_id: "plain", instruction: "i", grader: { kind: "own" } });
  assert.throws(() => checkTier(plain, "T1", docker, [own, ...graders]), { message: /plain is graded below it \(own: no tier is known\)/ });
});
