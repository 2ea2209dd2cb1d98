import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../../base/host/owner.ts";
import { Task } from "../../../base/schema/task.ts";
import { examineTask } from "../../../graders/admission/examine-task.ts";
import { whyNotApart, withWorkTogether } from "../../../graders/admission/work-together.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import { withNode } from "../../../tasks/node-environment.ts";
import { folderOf } from "../../fakes/kept-work.ts";

const file = (path: string, text: string) => ({ path, content: Buffer.from(text), mode: 0o644 });
const tests = (parser: string, command: string[], more = {}) => ({
  kind: "tests",
  parser,
  command,
  tests: null,
  fail_to_pass: [],
  pass_to_pass: [],
  ...more,
});

test("the same tests in one process with the work are those that run apart, in any part of a grader", () => {
  const apart = tests("node-test", ["node", "{runner}"]);
  assert.deepEqual(withWorkTogether(apart), { ...apart, work_runs: "together" });
  assert.equal(withWorkTogether({ ...apart, work_runs: "together" }), null);
  assert.equal(withWorkTogether(tests("pytest", ["pytest", "-rA"])), null);
  assert.equal(withWorkTogether({ kind: "script", command: ["true"] }), null);
  const script = { kind: "script", command: ["true"] };
  const parts = [script, apart].map((grader, at) => ({ name: `p${at}`, grader }));
  const changed = withWorkTogether({ kind: "composite", combine: "all", parts }) as { parts: { grader: object }[] } | null;
  assert.deepEqual(
    changed?.parts.map(({ grader }) => grader),
    [script, { ...apart, work_runs: "together" }],
  );
});

test("what a runner said of a test that cannot be apart is found in the evidence", () => {
  const said = (text: string) => whyNotApart({ parts: { a: { output_tail: text } } });
  const python = "E   alidade_tests.stand_ins.Unsupported: the test makes a subclass of a class of the work, X: where the task is right, ";
  assert.equal(said(`more\n${python}let it say work_runs: together\nE   more`), "the test makes a subclass of a class of the work, X");
  assert.equal(
    said("tests apart from the work need Python 3.8, and this is 3.6.9: let the task say work_runs: together\n"),
    "tests apart from the work need Python 3.8, and this is 3.6.9",
  );
  assert.equal(said("nothing"), null);
});

const cart = `import assert from "node:assert/strict";
import { test } from "node:test";
import { total } from "../total.js";
class Cart { items = [1, 2]; }
test("adds up", () => { assert.equal(total(new Cart()), 3); });
`;

test("tests that hand the work an object of their own class cannot be apart, which check says with the way that is left", async () => {
  const task = Task.parse({
    task_id: "total",
    instruction: "Add up.",
    environment: await withNode({
      ...Task.shape.environment.parse({}),
      files: await folderOf([file("package.json", '{"type": "module"}'), file("total.js", "export const total = () => 0;\n")]),
    }),
    grader: {
      ...tests("node-test", ["node", "{runner}", "test"]),
      tests: await folderOf([file("test/total.test.js", cart)]),
      fail_to_pass: ["adds up"],
    },
    gold_patch:
      "--- a/total.js\n+++ b/total.js\n@@ -1 +1 @@\n-export const total = () => 0;\n+export const total = ({ items }) => items.reduce((a, b) => a + b);\n",
  });
  const options = { run_id: "run-test-apart", owner: await currentOwner(), signal: AbortSignal.timeout(240_000), times: 1, word: "w" };
  const { reasons } = await examineTask(task, localProcess, options);
  assert.deepEqual(
    reasons.map(({ code }) => code),
    ["gold_not_full", "not_apart"],
    JSON.stringify(reasons),
  );
  const { message = "" } = reasons.at(-1) ?? {};
  assert.match(message, /^its tests cannot run apart from the work \(an instance of Cart of the tests cannot be handed to work/);
  assert.match(message, /the known solution earns 1 and no change 0: change the tests, or write work_runs: together, at tier T1/);
});
