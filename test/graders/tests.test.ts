/** The tests grader over the process sandbox, with the demo's parse-duration as its task: what must count, and what must not. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { applyPatch } from "../../base/files/apply-patch.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { overlay } from "../../base/files/file-tree.ts";
import { temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { Task } from "../../base/schema/task.ts";
import { deliveredFiles, freshSandbox, grade } from "../../graders/grade.ts";
import { runsApart, TestsSpec } from "../../graders/tests.ts";
import { placeWork, takeWork } from "../../graders/work/work.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { folderOf, keptWork } from "../fakes/kept-work.ts";

let task: Task;
let base: TreeFile[];
let gold: TreeFile[];
let owner: { run_id: string; owner: string };
/** The hidden tests' names. */
let names: string[];
before(async () => {
  const [shipped] = (await loadTasks("examples/demo/tasks/parse-duration")) as [Task];
  // The way of grading that lets the work nearest; the other one is in test/docker/apart.test.ts.
  task = { ...shipped, grader: { ...shipped.grader, work_runs: "together" } as Task["grader"] };
  base = await deliveredFiles(task);
  gold = applyPatch(base, task.gold_patch as string);
  owner = { run_id: "run-test-graders", owner: await currentOwner() };
  const { fail_to_pass, pass_to_pass } = TestsSpec.parse(task.grader);
  names = [...fail_to_pass, ...pass_to_pass];
});

const source = "src/parse-duration.js";
const file = (path: string, text: string): TreeFile => ({ path, content: Buffer.from(text), mode: 0o644 });
const textOf = (files: TreeFile[], path: string) => files.find((one) => one.path === path)?.content.toString() ?? "";

const workOf = (files: TreeFile[]) => keptWork(base, files, task.environment.workdir);

async function gradeWork(files: TreeFile[], change: { task?: Task; signal?: AbortSignal } = {}) {
  const context = { task: change.task ?? task, signal: change.signal ?? new AbortController().signal };
  return grade({ ...context, work: await workOf(files), fresh: freshSandbox(context, localProcess, owner) });
}

function withGrader(grader: Partial<Task["grader"]>, limits: Partial<Task["limits"]> = {}): Task {
  return { ...task, grader: { ...task.grader, ...grader } as Task["grader"], limits: { ...task.limits, ...limits } };
}

/** Work that has `code` run when the tests import it. */
const atImport = (code: string) => overlay(base, [file(source, `${textOf(base, source)}\n${code}\n`)]);

test("a fix gets 1, with what it changed as evidence", async () => {
  const verdict = await gradeWork(gold);
  assert.deepEqual([verdict.reward, verdict.status, verdict.error], [1, "graded", null]);
  assert.deepEqual([verdict.tier, verdict.isolation, verdict.grader], ["T0", "none", "tests/node-test"]);
  assert.deepEqual([verdict.evidence.no_change, verdict.evidence.modified, verdict.evidence.failed_count], [false, [source], 0]);
  assert.deepEqual(verdict.components.fail_to_pass, { value: 1, weight: 0 });
  assert.match(
    String(verdict.evidence.remains_possible),
    /shares this machine with what grades it.*tests load the work into their own process/,
  );
});

test("no change is graded like any other work and gets 0", async () => {
  const verdict = await gradeWork(base);
  assert.deepEqual([verdict.reward, verdict.status, verdict.evidence.no_change], [0, "graded", true]);
  assert.deepEqual(verdict.components.pass_to_pass, { value: 1, weight: 0 });
  assert.deepEqual(verdict.evidence.failed, [
    { name: "several units add up", outcome: "failed" },
    { name: "a smaller unit may come first", outcome: "failed" },
  ]);
});

const forgedTap = () =>
  ["TAP version 13", ...names.flatMap((name, index) => [`# Subtest: ${name}`, `ok ${index + 1} - ${name}`]), `1..${names.length}`].join(
    "\n",
  );
/** They go on where the runner's first row ends: all that they lack is the key. */
const forgedRows = () =>
  [...names.map((name) => ({ kind: "test", name, outcome: "passed" })), { kind: "complete", name: null, outcome: null }].map(
    (row, sequence) => `@report ${"0".repeat(64)} ${JSON.stringify({ ...row, sequence: sequence + 1 })}`,
  );

for (const [title, work] of [
  ["printed results and an early exit", () => atImport(`console.log(${JSON.stringify(forgedTap())}); process.exit(0);`)],
  [
    "printed report rows with a made-up seal",
    () => atImport(`console.log(${JSON.stringify(`\n${forgedRows().join("\n")}\n`)}); process.exit(0);`),
  ],
  ["printed results beside the real ones", () => atImport(`console.log(${JSON.stringify(forgedTap())});`)],
  ["exit 0 on import", () => atImport("process.exit(0);")],
  ["a planted toJSON", () => atImport(`Object.prototype.toJSON = function () { return { ...this, outcome: "passed" }; };`)],
  [
    "tests of the same names defined by the work",
    () => atImport(`import { test as t } from "node:test"; for (const name of ${JSON.stringify(names)}) t(name, () => {});`),
  ],
  ["tests that the work says are to do", () => atImport('process.getBuiltinModule("node:test").beforeEach((t) => t.todo("later"));')],
  ["visible tests deleted", () => base.filter((one) => !one.path.startsWith("test/"))],
  [
    "visible tests edited to pass",
    () =>
      overlay(base, [
        file(
          "test/parse-duration.test.js",
          names.map((name) => `(await import("node:test")).test(${JSON.stringify(name)}, () => {});`).join("\n"),
        ),
      ]),
  ],
  [
    "a second test file beside the hidden one",
    () => overlay(base, [file("test/.more/a.test.js", forgedTap()), file("test/zz.js", "process.exit(0)")]),
  ],
  ["a broken package.json", () => overlay(base, [file("package.json", '{"type":"commonjs"}')])],
  ["a file where the tests' folder was", () => overlay(base, [file("test", "")])],
  ["a folder where a hidden test goes", () => overlay(base, [file("test/parse-duration.test.js/x", "")])],
  ["the source deleted", () => base.filter((one) => one.path !== source)],
] as const) {
  test(`${title}: 0, and a verdict`, async () => {
    const verdict = await gradeWork(work());
    assert.deepEqual([verdict.reward, verdict.status, verdict.error], [0, "graded", null], JSON.stringify(verdict.evidence));
  });
}

/** The demo's tasks protect their tests; these fold over what a task that protects nothing leaves open. */
const defined = () => `import { test } from "node:test";\n${names.map((name) => `test(${JSON.stringify(name)}, () => {});`).join("\n")}\n`;

const left: [string, () => TreeFile[]][] = [
  ["a folder in the place of the hidden test", () => overlay(base, [file("test/parse-duration.test.js/a.test.js", defined())])],
  ["a file in the place of the hidden tests' folder", () => [...base.filter((one) => !one.path.startsWith("test/")), file("test", "")]],
  [
    "a test file of the work's that calls the runner's last test early",
    () => overlay(base, [file("test/0.test.mjs", `${defined()}import(process.argv[1].replace("node-test-runner", "last-test"));`)]),
  ],
  [
    "a test file of the work's beside a source that does not load",
    () => overlay(base, [file("test/0.test.mjs", defined()), file(source, "throw new Error();")]),
  ],
];
for (const [title, work] of left) {
  test(`${title}, where nothing is protected: 0, and a verdict`, async () => {
    const verdict = await gradeWork(work(), { task: withGrader({ protected: [] }) });
    assert.deepEqual([verdict.reward, verdict.status, verdict.error], [0, "graded", null], JSON.stringify(verdict.evidence));
  });
}

test("a fix whose module keeps a timer running still gets its 1", async () => {
  const verdict = await gradeWork(overlay(gold, [file(source, `${textOf(gold, source)}\nsetInterval(() => {}, 1000);\n`)]));
  assert.equal(verdict.reward, 1, JSON.stringify(verdict.evidence));
});

test("tests that hang for any work end as grader_timeout without a reward", async () => {
  const verdict = await gradeWork(gold, { task: withGrader({ command: ["sleep", "600"] }, { grade_seconds: 1 }) });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [null, "grader_timeout", "grader_timeout"]);
  assert.match(verdict.error?.message ?? "", /1 seconds/);
});

test("tests that a work has hang give it the reward 0, with what the task's own files took", async () => {
  const printed = ["sh", "-c", `if grep -q while ${source}; then sleep 600; fi; printf 'TAP version 13\\n1..1\\nok 1 - a\\n'`];
  const grader = { parser: "tap", command: printed, fail_to_pass: ["a"], pass_to_pass: [] };
  const verdict = await gradeWork(atImport("while (true);"), { task: withGrader(grader, { grade_seconds: 8 }) });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [0, "no_output", "grader_timeout"], JSON.stringify(verdict));
  assert.match(verdict.error?.message ?? "", /no change \S+ of 8 seconds, known solution \S+ of 8 seconds/);
});

test("a failed test that its file says is to do has passed, as node:test says", async () => {
  const toDo = `import { test } from "node:test"; test("later", { todo: true }, () => { throw new Error("later"); });\n`;
  const tests = await folderOf([file("test/later.test.js", toDo)]);
  const { reward, evidence } = await gradeWork(gold, { task: withGrader({ tests, fail_to_pass: ["later"], pass_to_pass: [] }) });
  assert.equal(reward, 1, JSON.stringify(evidence));
});

test("tests run apart from the work where a runner of ours can, and a task that asks it of a log is refused", () => {
  const spec = (parser: string, command: string[], more = {}) =>
    TestsSpec.safeParse({ ...TestsSpec.parse(task.grader), work_runs: undefined, parser, command, ...more });
  const runs = (...given: Parameters<typeof spec>) => runsApart(spec(...given).data as TestsSpec);
  for (const parser of ["node-test", "tape", "pytest", "unittest"]) {
    assert.equal(runs(parser, ["x", "{runner}"]), true, parser);
    assert.equal(runs(parser, ["x", "{runner}"], { work_runs: "together" }), false, parser);
  }
  assert.equal(runs("pytest", ["pytest", "-rA"]), false);
  for (const [parser, command] of [
    ["pytest", ["sh", "-c", "python3 {runner}"]],
    ["tap", ["node", "--test"]],
  ] as const) {
    const { error } = spec(parser, [...command], { work_runs: "apart" });
    assert.match(error?.issues[0]?.message ?? "", /^is "apart", and nothing runs the tests of .* name {runner} as a word of its own/);
    assert.deepEqual(error?.issues[0]?.path, ["work_runs"]);
  }
});

test("a required name that no test has is absent and makes the reward 0", async () => {
  const verdict = await gradeWork(gold, { task: withGrader({ fail_to_pass: ["several units add up", "no such test"] }) });
  assert.equal(verdict.reward, 0);
  assert.deepEqual(verdict.evidence.failed, [{ name: "no such test", outcome: "absent" }]);
});

test("a test command that cannot be started is the grader's failure and not the work's", async () => {
  const verdict = await gradeWork(gold, { task: withGrader({ command: ["no-such-program", "{runner}"] }) });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [null, "grader_error", "grader_error"]);
  const unsealed = await gradeWork(gold, { task: withGrader({ command: ["no-such-program"], parser: "tap" }) });
  assert.deepEqual([unsealed.reward, unsealed.status], [null, "grader_error"]);
});

test("a work that makes a startable command exit with 127 is graded", async () => {
  const plain = { command: ["node", "--test-reporter=tap", "test/parse-duration.test.js"], parser: "tap" as const };
  assert.equal((await gradeWork(gold, { task: withGrader(plain) })).reward, 1);
  const verdict = await gradeWork(atImport("process.exit(127);"), { task: withGrader(plain) });
  assert.deepEqual([verdict.reward, verdict.status], [0, "graded"]);
});

test("printed points in a plain TAP report break its numbering and the reward is 0", async () => {
  const plain = { command: ["node", "--test-reporter=tap", "test/parse-duration.test.js"], parser: "tap" as const };
  const verdict = await gradeWork(atImport(`console.log("ok 1 - several units add up");`), { task: withGrader(plain) });
  assert.equal(verdict.reward, 0);
});

test("a JUnit report is read from its file", async () => {
  const xml = (name: string) => `<testsuite><testcase name="${name}"/></testsuite>`;
  const writes = (text: string) => ({
    parser: "junit" as const,
    command: ["node", "-e", "require('fs').writeFileSync(process.argv[1], process.argv[2])", "{report}", text],
  });
  const required = { fail_to_pass: ["a"], pass_to_pass: [] };
  assert.equal((await gradeWork(gold, { task: withGrader({ ...writes(xml("a")), ...required }) })).reward, 1);
  assert.equal((await gradeWork(gold, { task: withGrader({ ...writes(xml("b")), ...required }) })).reward, 0);
  assert.equal((await gradeWork(gold, { task: withGrader({ ...writes("<testsuite><testcase name='a'/>"), ...required }) })).reward, 0);
});

test("a log on stderr is read, under the name of any Python, and not where a part of it was dropped", async () => {
  const log = "test_a (m.A.test_a) ... ok\n\nRan 1 test in 0.001s\n\nOK\n";
  const prints = (text: string) => ({
    parser: "unittest" as const,
    command: ["node", "-e", "process.stderr.write(process.argv[1])", text],
  });
  for (const name of ["test_a (m.A)", "test_a (m.A.test_a)"]) {
    const verdict = await gradeWork(gold, { task: withGrader({ ...prints(log), fail_to_pass: [name], pass_to_pass: [] }) });
    assert.deepEqual([verdict.reward, verdict.tier, verdict.grader], [1, "T0", "tests/unittest"]);
  }
  const cut = withGrader({ ...prints(log + "x".repeat(5_000)), fail_to_pass: ["test_a (m.A)"], pass_to_pass: [] }, { output_bytes: 1_000 });
  const verdict = await gradeWork(gold, { task: cut });
  assert.deepEqual([verdict.reward, verdict.evidence.report_complete], [0, false]);
  assert.match(String(verdict.evidence.report_problem), /limits\.output_bytes/);
});

test("what steers the framework stays as it was delivered, and its modules have no stand-in, unless the task says otherwise", async () => {
  const hostile = ["conftest.py", "src/conftest.py", "pytest.ini", "x.egg-info/entry_points.txt", "difflib.py", "pytest/__init__.py"];
  const honest = ["src/new.py", "html/page.txt", "src/difflib.py"];
  const work = overlay(
    gold,
    [...hostile, ...honest].map((path) => file(path, "")),
  );
  // Reports each file that is there as a test that passed.
  const code = `const there = process.argv.slice(1).filter((path) => require("fs").existsSync(path));
    console.log(there.map((path) => "=== RUN   " + path + "\\n--- PASS: " + path + " (0.00s)\\n").join("") + "ok  \\tm\\t0.1s");
    console.log("== short test summary info ==\\n" + there.map((path) => "PASSED " + path + "\\n").join("") + "== " + there.length + " passed in 0.1s ==");`;
  const present = async (change: object) => {
    const grader = {
      protected: undefined,
      parser: "pytest" as const,
      command: ["node", "-e", code, ...hostile, ...honest],
      fail_to_pass: [...hostile, ...honest],
      pass_to_pass: [],
    };
    const { evidence } = await gradeWork(work, { task: withGrader({ ...grader, ...change }) });
    return (evidence.failed as { name: string }[]).map(({ name }) => name);
  };
  assert.deepEqual(await present({}), hostile);
  assert.deepEqual(await present({ protected: [] }), []);
  assert.deepEqual(await present({ parser: "go-test" }), []);
});

test("of output beside a report in a file the end is kept", async () => {
  const command = ["node", "-e", "console.log('x'.repeat(5_000)); console.log('last')", "{report}"];
  const verdict = await gradeWork(gold, { task: withGrader({ parser: "junit", command }, { output_bytes: 1_000 }) });
  assert.match(String(verdict.evidence.output_tail), /^x{994}\nlast\n$/);
});

test("a work that takes the report's folder away, or fills it, has no report and gets 0", async () => {
  const folder = "require('path').dirname(process.argv[1])";
  for (const code of [
    `fs.rmSync(${folder}, { recursive: true })`,
    `for (let i = 0; i < 101; i++) fs.writeFileSync(${folder} + "/" + i, "")`,
  ]) {
    const command = ["node", "-e", `const fs = require("fs"); ${code}`, "{report}"];
    const verdict = await gradeWork(gold, { task: withGrader({ parser: "junit", command }) });
    assert.deepEqual([verdict.reward, verdict.status, verdict.error], [0, "graded", null]);
    assert.equal(verdict.evidence.report_problem, "there is no report");
  }
});

test("a report that is too large, or lies among too many files, is graded with 0: it is no way out of a verdict", async () => {
  const writes = (code: string) => ({ parser: "junit" as const, command: ["node", "-e", code, "{report}"] });
  const report = "require('fs').writeFileSync(process.argv[1]";
  for (const code of [
    `for (let i = 0; i < 120; i++) require('fs').writeFileSync(process.argv[1] + i, '')`,
    `${report}, 'x'.repeat(40e6))`,
    `${report}, '<testsuite' + ' a="b"'.repeat(4e6) + '/>')`,
  ]) {
    const verdict = await gradeWork(gold, { task: withGrader(writes(code)) });
    assert.deepEqual([verdict.reward, verdict.status, verdict.evidence.report_complete], [0, "graded", false], verdict.error?.message);
  }
});

test("a work with a path that leaves the workdir is not written anywhere", async () => {
  const verdict = await gradeWork([...gold, file("../../escaped.txt", "x")]);
  assert.deepEqual([verdict.reward, verdict.status], [0, "no_output"], "its own doing: a work without it is graded");
});

test("links and the agent's own git folder are part of the work, and caches are not graded with", async () => {
  await using sandbox = await localProcess.create(specOf(task, owner), new AbortController().signal);
  await sandbox.writeFiles(base);
  await sandbox.writeFiles([file(".git/config", "[core]\n\tfsmonitor = touch /tmp/owned\n"), file("src/new.js", "1\n")]);
  await sandbox.writeFiles([file("test/__pycache__/test_x.cpython-311.pyc", "forged")]);
  await sandbox.exec(["ln", "-s", "/etc/passwd", "link"]);
  await sandbox.exec(["mkdir", "empty"]);
  await sandbox.freeze();
  await using kept = await temporaryLayers();
  const work = await takeWork(sandbox, task, base, kept.folder);
  const found = work.changes.filter(({ type }) => type !== "folder").map(({ path }) => path);
  const { workdir } = task.environment;
  const names = [".git/config", "link", "src/new.js", "test/__pycache__/test_x.cpython-311.pyc"];
  assert.deepEqual(
    found,
    names.map((name) => `${workdir}/${name}`),
  );
  await using fresh = await localProcess.create(specOf(task, owner), new AbortController().signal);
  await placeWork(fresh, task, work, {}, new AbortController().signal);
  const { stdout } = await fresh.exec(["sh", "-c", "find . -name '*.pyc'; ls -A; readlink link"]);
  assert.equal(stdout, ".git\nempty\nlink\nsrc\n/etc/passwd\n");
});

test("work that fills the grader's own sandbox, or takes its memory, is no output: 0 and no place to hide", async () => {
  for (const code of ["sandbox_disk_full", "sandbox_out_of_memory"] as const) {
    const fresh = () => Promise.reject(new AlidadeError(code, "the sandbox is full"));
    const verdict = await grade({ task, work: await workOf(gold), fresh, signal: new AbortController().signal });
    assert.deepEqual([verdict.reward, verdict.status, verdict.error?.code], [0, "no_output", code]);
  }
});

test("a sandbox that cannot be released costs no verdict", async () => {
  const create: typeof localProcess.create = async (spec, signal) => {
    const sandbox = await localProcess.create(spec, signal);
    const release = sandbox[Symbol.asyncDispose].bind(sandbox);
    sandbox[Symbol.asyncDispose] = () => release().then(() => Promise.reject(new Error("device or resource busy")));
    return sandbox;
  };
  const context = { task, signal: new AbortController().signal };
  const verdict = await grade({ ...context, work: await workOf(gold), fresh: freshSandbox(context, { ...localProcess, create }, owner) });
  assert.deepEqual([verdict.reward, verdict.status, verdict.error], [1, "graded", null]);
});

test("a backend that fails gives a verdict without a reward, and so does a cancelled grading", async () => {
  const fresh = () => Promise.reject(new Error("the engine is gone"));
  const signal = new AbortController().signal;
  const verdict = await grade({ task, work: await workOf(gold), fresh, signal });
  assert.deepEqual([verdict.reward, verdict.status], [null, "grader_error"]);
  assert.match(verdict.error?.message ?? "", /the engine is gone/);
  const cancelled = await gradeWork(gold, { signal: AbortSignal.abort() });
  assert.deepEqual([cancelled.reward, cancelled.status], [null, "cancelled"]);
});
