import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grader } from "../../graders/grader.ts";
import { graders } from "../../graders/index.ts";
import { checkTiers } from "../../graders/min-tier.ts";
import { checkGrading } from "../../graders/shared/check-grading.ts";
import { docker } from "../../sandboxes/docker.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { Task } from "../../schema/task.ts";

const task = (task_id: string, parser: string, work = "workdir", work_runs?: "together", command = ["x"]) =>
  Task.parse({
    task_id,
    instruction: "i",
    environment: { work },
    grader: { kind: "tests", command, parser, work_runs, tests: "t", fail_to_pass: ["a"], pass_to_pass: [] },
  });
const sealed = task("sealed", "node-test");

test("a run of tasks that are graded below its least tier is refused with their names", () => {
  assert.doesNotThrow(() => checkTiers([sealed], "T2", docker));
  assert.doesNotThrow(() => checkTiers([sealed, task("log", "pytest")], null, docker));
  const below = [task("log", "pytest"), task("all", "node-test", "layer"), task("one", "tape", "workdir", "together")];
  assert.throws(() => checkTiers([sealed, ...below], "T2", docker), {
    code: "config_invalid",
    param: "min_tier",
    message: /min_tier is T2, and 3 of 4 tasks are graded below it: log \(tests: T1\), all \(tests: T1\), one \(tests: T1\)\./,
  });
});

test("pytest and unittest are T2 apart from the work, where our runner runs them by a Python outside of the workdir", () => {
  const runs = (...command: string[]) => task("log", "pytest", "workdir", undefined, command);
  const safe = [
    runs("python3", "{runner}", "tests"),
    task("u", "unittest", "workdir", undefined, ["/usr/bin/python3", "{runner}", "tests"]),
  ];
  assert.doesNotThrow(() => checkTiers(safe, "T2", docker));
  const below = [
    runs("pytest", "-rA"),
    runs(".venv/bin/python", "{runner}", "tests"),
    runs("/work/venv/bin/python", "{runner}", "tests"),
    runs("bash", "start.sh", "{runner}", "tests"),
    runs("sh", "-c", "./set-up; python3 {runner} tests"),
    runs("python3", "--check-hash-based-pycs=./x", "{runner}"),
  ];
  assert.throws(() => checkTiers([...safe, ...below], "T2", docker), { message: /6 of 8 tasks are graded below it/ });
});

test("in the process sandbox every tier is T0", () => {
  assert.throws(() => checkTiers([sealed], "T1", localProcess), { message: /sealed \(tests: T0\); the process sandbox gives T0/ });
  assert.doesNotThrow(() => checkTiers([sealed], "T0", localProcess));
});

test("what is graded in the agent's own sandbox is T0, and a verifier of its own stays what it is", () => {
  const shared = { ...sealed, grading: "shared" as const };
  assert.throws(() => checkTiers([shared], "T1", docker), { message: /sealed \(tests: T0\)/ });
  const harbor = { kind: "harbor", tests: null, verifier: { environment: {}, limits: {} } };
  const apart = Task.parse({ task_id: "apart", instruction: "i", grading: "shared", grader: harbor });
  assert.doesNotThrow(() => checkTiers([apart], "T1", docker));
  assert.throws(() => checkTiers([{ ...apart, grader: { ...harbor, verifier: null } }], "T1", docker), { message: /apart \(harbor: T0\)/ });
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
  assert.throws(() => checkTiers([plain], "T1", docker, [own, ...graders]), { message: /plain \(own: no tier is known\)/ });
});
