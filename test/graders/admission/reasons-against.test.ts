/** What gradings say against a task. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionGrading, LeakScan } from "../../../base/schema/admission.ts";
import { Task } from "../../../base/schema/task.ts";
import { examineTask } from "../../../graders/admission/examine-task.ts";
import { reasonsAgainst } from "../../../graders/admission/reasons-against.ts";
import { docker } from "../../../sandboxes/docker.ts";

const task = Task.parse({ task_id: "t", instruction: "i", grader: { kind: "script", command: ["true"] } });

function graded(work: string, ...rewards: (number | null)[]): AdmissionGrading[] {
  return rewards.map((reward, at) => ({
    work,
    language: null,
    time: at + 1,
    reward,
    status: reward === null ? "grader_error" : "graded",
    tier: "T1",
    duration_ms: 1,
    memory_mb: null,
    error: reward === null ? "it broke" : null,
  }));
}

test("a task that is graded in the agent's own sandbox is never admitted", async () => {
  const shared = { ...task, gold_files: "solution", grading: "shared" as const };
  const options = { run_id: "r", owner: "o", times: 1, word: "w", signal: AbortSignal.timeout(60_000) };
  const { reasons, whole } = await examineTask(shared, docker, options);
  assert.deepEqual([reasons.map(({ code }) => code), whole], [["shared_grading"], true]);
});

const holding = [...graded("gold", 1, 1, 1), ...graded("no-op", 0, 0, 0), ...graded("random-edit", 0)];
const codes = (gradings: AdmissionGrading[], scan: LeakScan | null = null, of = task) =>
  reasonsAgainst(of, gradings, scan).map(({ code }) => code);

test("a task holds whose solution earns all, and no change, a random edit and each hack no more than nothing", () => {
  assert.deepEqual(codes([...holding, ...graded("exit-at-load", 0), ...graded("hang", null)]), []);
});

test("no change that earns a part is the task's baseline and no fault, and only what earns more than it does counts", () => {
  const part = [...graded("gold", 1, 1), ...graded("no-op", 0.4, 0.4), ...graded("random-edit", 0.4), ...graded("exit-at-load", 0.4)];
  assert.deepEqual(codes(part), []);
  assert.deepEqual(codes([...part, ...graded("flood", 0.5)]), ["hackable"]);
});

test("gradings of one work that differ are a reason, and nothing is graded until it passes", () => {
  assert.deepEqual(codes([...graded("gold", 1, 0, 1), ...graded("no-op", 0, 0, 0)]), ["flaky"]);
  assert.deepEqual(codes([...graded("gold", 1, 1), ...graded("no-op", 0, null)]), ["flaky"]);
});

test("each other fault has a sentence with the numbers and what to do", () => {
  assert.deepEqual(codes([...graded("gold", 0.5), ...graded("no-op", 0)]), ["gold_not_full"]);
  assert.deepEqual(codes([...graded("gold", 1), ...graded("no-op", 1)]), ["no_change_pays"]);
  assert.deepEqual(codes([...graded("gold", null), ...graded("no-op", 0)]), ["ungraded"]);
  assert.deepEqual(codes([...graded("gold", 1), ...graded("no-op", 0), ...graded("random-edit", 0.1)]), ["random_edit_pays"]);
  const [hack] = reasonsAgainst(task, [...holding, ...graded("exit-at-load", 1)], null);
  assert.match(hack?.message ?? "", /^exit-at-load: a work that ends the process .* earns 1 at tier T1, and no change 0; so do not take/);
});

test("full is what the task's range says", () => {
  const ranged = Task.parse({ ...task, reward_range: [-1, 10] });
  assert.deepEqual(codes([...graded("gold", 10), ...graded("no-op", 1)], null, ranged), []);
  assert.deepEqual(codes([...graded("gold", 1), ...graded("no-op", -1)], null, ranged), ["gold_not_full"]);
});

test("a leak of the solution or of tests is a reason, and names of tests are none", () => {
  const leak = { place: "/opt/deps/index.js", found: 5, of: 6 };
  const scan = (what: "solution" | "names"): LeakScan => ({ leaks: [{ what, ...leak }], looked_for: 6, not_scanned: [] });
  assert.deepEqual(codes(holding, scan("names")), []);
  const [found] = reasonsAgainst(task, holding, scan("solution"));
  assert.match(found?.message ?? "", /5 of 6 lines of the known solution in \/opt\/deps\/index\.js: take it away/);
});
