import assert from "node:assert/strict";
import { test } from "node:test";
import { Verdict } from "../../base/schema/rollout.ts";
import { type GraderSpec, Task } from "../../base/schema/task.ts";
import { runnerKit } from "../../graders/by-tests/runner-files.ts";
import { grade } from "../../graders/grade.ts";
import { parserNamed, parsers } from "../../graders/parsers/registry.ts";
import { graderOf, graders, specOfGrader } from "../../graders/registry.ts";
import { TestsSpec } from "../../graders/tests.ts";

const specs: Record<string, GraderSpec> = {
  tests: {
    kind: "tests",
    command: ["true"],
    parser: "tap",
    tests: "schema",
    fail_to_pass: ["a"],
    pass_to_pass: [],
    protected: [],
    work_runs: "together",
  },
  cases: { kind: "cases", command: ["true"], cases: [{ args: [], stdin: "", stdout: "a", exit: 0 }], files: null, pays: "all" },
  script: { kind: "script", command: ["true"], files: null },
  harbor: {
    kind: "harbor",
    tests: null,
    step_tests: null,
    env: {},
    user: "root",
    hold_back: true,
    printed: null,
    reward: null,
    verifier: null,
    artifacts: [],
    collect: [],
  },
  state: { kind: "state", checks: [{ file: "a", exists: true }] },
  answer: { kind: "answer", exact: "a", tolerance: 0, take: "all", ignore_case: false },
  trajectory: {
    kind: "trajectory",
    must: [],
    must_not: [],
    order: [],
    max_turns: 1,
    ran: [],
    ran_not: [],
    ran_order: [],
    unasked: "allow",
  },
  judge: { kind: "judge", rubric: [{ name: "a", says: "It is done.", weight: 1 }], sees: ["answer", "files"], votes: 1 },
  remote: {
    kind: "remote",
    url: "http://127.0.0.1:9/verify",
    form: "alidade",
    sends: [],
    data: {},
    timeout_seconds: 60,
    tries: 1,
  },
  composite: {
    kind: "composite",
    combine: "all",
    parts: [{ name: "a", grader: { kind: "script", command: ["true"] }, gate: false, weight: 1 }],
  },
};

const harborSpec = specs.harbor as GraderSpec;
specs.steps = { kind: "steps", combine: "mean", steps: [{ name: "a", grader: harborSpec, grade_seconds: 1, min_reward: { reward: 1 } }] };

test("every grader of the list has a spec here that it reads", () => {
  assert.deepEqual(graders.map(({ name }) => name).sort(), Object.keys(specs).sort());
  for (const spec of Object.values(specs)) assert.deepEqual([graderOf(spec).name, specOfGrader(spec)], [spec.kind, spec]);
  assert.throws(() => graderOf({ kind: "constructor" }), {
    code: "plugin_unknown",
    message: /"constructor"; there are: tests, cases, script, harbor/,
  });
});

test("a task names any parser of the list, and no other", () => {
  for (const { name } of parsers) assert.equal(TestsSpec.parse({ ...specs.tests, parser: name }).parser, name);
  assert.throws(() => TestsSpec.parse({ ...specs.tests, parser: "constructor" }));
  for (const { name } of parsers) assert.equal(parserNamed(name).name, name);
});

for (const parser of parsers) {
  test(`${parser.name}: an empty report is not complete and says why`, () => {
    const report = parser.parse("", "key");
    assert.deepEqual([report.complete, report.outcomes.size], [false, 0]);
    assert.notEqual(report.problem, null);
  });

  test(`${parser.name}: its runner is there, and only a sealed one has any`, async () => {
    for (const form of [parser, parser.sealedForm ?? parser]) {
      assert.equal(form.runner !== null, form.sealed);
      if (form.runner === null) continue;
      const kit = runnerKit(form);
      const files = (await kit.files(form.runner)).map(({ path }) => path);
      for (const program of [form.runner, kit.workHost]) assert.ok(files.includes(kit.pathOf(program)), program);
    }
  });
}

/** They look at the record, and at no file. */
const withoutSandbox = new Set(["answer", "trajectory"]);

for (const spec of Object.values(specs)) {
  const steps = spec.kind === "steps" ? [{ name: "a", instruction: "i", agent_seconds: 1 }] : undefined;
  const task = Task.parse({ task_id: "t", instruction: "i", grader: spec, steps });
  const work = { file: "", sha256: "", bytes: 0, changes: [] };
  const context = { task, work, steps: [{ work }], signal: new AbortController().signal };

  test(`${spec.kind}: a sandbox that does not come gives a verdict without a reward`, async () => {
    const verdict = await grade({ ...context, fresh: () => Promise.reject(new Error("no room")) });
    if (spec.kind === "judge") assert.match(verdict.error?.message ?? "", /through the proxy of a run, and there is none/);
    else if (spec.kind === "remote") assert.match(verdict.error?.message ?? "", /is not in grader_servers/);
    else if (withoutSandbox.has(spec.kind)) assert.equal(verdict.status, "graded");
    else assert.deepEqual([verdict.reward, verdict.error?.message.includes("no room")], [null, true]);
    Verdict.parse(verdict);
  });

  test(`${spec.kind}: a cancelled grading is a verdict without a reward, at once`, async () => {
    const stop = new AbortController();
    const verdict = grade({ ...context, signal: stop.signal, fresh: () => new Promise(() => {}) });
    stop.abort();
    assert.deepEqual([(await verdict).reward, (await verdict).status], [null, "cancelled"]);
    Verdict.parse(await verdict);
  });
}
