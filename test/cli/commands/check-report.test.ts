/** What `alidade check` says of a task, in the order in which it is read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AdmissionRecord, Leak } from "../../../base/schema/admission.ts";
import { Task } from "../../../base/schema/task.ts";
import { notesOn, whyNot } from "../../../cli/commands/check-report.ts";
import { reasonsAgainst } from "../../../graders/admission/reasons-against.ts";
import type { TaskCheck } from "../../../rollouts/index.ts";

const task = Task.parse({ task_id: "t", instruction: "i", grader: { kind: "script", command: ["true"] } });

function checkWith(leaks: Leak[]): TaskCheck {
  const leak_scan = { leaks, looked_for: 1, not_scanned: [] };
  const reasons = reasonsAgainst(task, [], leak_scan);
  const record = { reasons, gradings: [], leak_scan, baseline: null } as unknown as AdmissionRecord;
  return { task_id: "t", outcome: "quarantined", record, reused: false, error: null, verdicts: [], file: null } as unknown as TaskCheck;
}

const leaksOf = (what: Leak["what"], count: number): Leak[] =>
  Array.from({ length: count }, (_, at) => ({ what, place: `/usr/lib/${at}.py`, found: at === 7 ? 3 : 2, of: 3 }));

test("leaks of one kind are one line, which names the place that holds most and a few others", () => {
  const [quarantined, ...others] = whyNot(checkWith([...leaksOf("solution", 45), ...leaksOf("names", 45)]));
  assert.deepEqual(others, []);
  assert.equal(
    quarantined,
    "\nt is quarantined:\n  leak: an agent can read 3 of 3 lines of the known solution in /usr/lib/7.py, and also in /usr/lib/0.py, /usr/lib/1.py, /usr/lib/2.py, 41 more places: take it away (environment.conceal), or out of the image",
  );
});

test("names of tests are a note of one line, and no part of the verdict", () => {
  const check = checkWith([...leaksOf("names", 2)]);
  assert.deepEqual(check.record?.reasons, []);
  assert.deepEqual(notesOn(check), [
    "\nt: an agent can read 2 of 3 names of tests that fail before the fix in /usr/lib/0.py, and also in /usr/lib/1.py; look whether it should",
  ]);
});
