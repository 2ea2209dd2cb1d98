import assert from "node:assert/strict";
import { test } from "node:test";
import { Task } from "../../base/schema/task.ts";
import { tierOfTask } from "../../graders/min-tier.ts";
import { canKeep, checkGrading, costOfSharing } from "../../graders/shared/check-grading.ts";
import { withGrading } from "../../graders/shared/place-to-grade.ts";
import { checkKept } from "../../graders/shared/stand-still.ts";
import { docker } from "../../sandboxes/docker.ts";
import { localProcess } from "../../sandboxes/process.ts";

const plain = Task.parse({ task_id: "plain", instruction: "i", grader: { kind: "script", command: ["sh", "test.sh"] } });
const kept: Task = { ...plain, task_id: "kept", keep_processes: true };

test("a task says, or a run for all of its tasks, that processes are kept, and grading fresh takes both words back", () => {
  assert.deepEqual(withGrading(plain, null), plain);
  assert.deepEqual(withGrading(plain, null, true), { ...plain, keep_processes: true });
  assert.deepEqual(withGrading(kept, "shared"), { ...kept, grading: "shared" });
  assert.deepEqual(withGrading({ ...kept, grading: "shared" }, "fresh"), { ...plain, task_id: "kept" });
  assert.throws(() => withGrading(plain, "fresh", true), { code: "config_invalid", param: "keep_processes" });
  assert.deepEqual([tierOfTask(plain, docker), tierOfTask(kept, docker)], ["T1", "T0"]);
});

test("a task that cannot keep its processes is refused by the field, and a run says how many tasks do", () => {
  const step = { name: "one", instruction: "i", agent_seconds: 1 };
  const steps = Task.parse({ ...kept, steps: [step] });
  const refusals: [task: Task, said: RegExp][] = [
    [{ ...kept, grading: "fresh" }, /^keep_processes is true, but grading is fresh, where no process of an agent lives/],
    [steps, /^keep_processes is true, but it has steps, and what the agent leaves running could read the tests of one/],
    [{ ...kept, environment: { ...kept.environment, conceal: ["rm", "x"] } }, /^keep_processes is true, but environment\.conceal takes/],
  ];
  for (const [task, message] of refusals)
    assert.throws(() => checkGrading(task), { code: "task_invalid", param: "keep_processes", message });
  assert.doesNotThrow(() => checkGrading(kept));
  assert.deepEqual([canKeep(plain), canKeep({ ...steps, keep_processes: false })], [true, false]);
  assert.doesNotThrow(() => checkKept(kept, docker));
  assert.throws(() => checkKept(kept, localProcess), {
    code: "task_invalid",
    message: /keep_processes is true, and processes of these sandboxes cannot stand still/,
  });
  const cost = costOfSharing([plain, kept, { ...plain, grading: "shared" }]) ?? "";
  assert.match(
    cost,
    /GRADED IN THE AGENT'S OWN SANDBOX \(grading: shared\): 2 of 3 tasks, 1 of them while its processes live \(keep_processes\)\. /,
  );
});
