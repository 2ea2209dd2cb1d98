import assert from "node:assert/strict";
import fs, { cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { readFolder } from "../../base/files/file-tree.ts";
import { TestsSpec } from "../../graders/tests.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";

const testPatch = `diff --git a/test/a.test.js b/test/a.test.js
--- a/test/a.test.js
+++ b/test/a.test.js
@@ -1 +1,2 @@
 // first
+// second
`;

const row = {
  instance_id: "row-1",
  repo: "owner/name",
  base_commit: "abc",
  problem_statement: "It is broken.",
  hints_text: "a column that we do not know",
  patch: "--- a/index.js\n+++ b/index.js\n@@ -1 +1 @@\n-1\n+2\n",
  test_patch: testPatch,
  FAIL_TO_PASS: '["second"]',
  PASS_TO_PASS: ["first"],
  source: { kind: "folder", path: "tree", tests: ["test/**"] },
  test_cmd: ["node", "{runner}", "test"],
  log_parser: "node-test",
};

async function fileOf(t: TestContext, value: unknown, name = "rows.jsonl"): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-rows-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "tree/test"), { recursive: true });
  await writeFile(join(folder, "tree/index.js"), "1\n");
  await writeFile(join(folder, "tree/test/a.test.js"), "// first\n");
  await writeFile(join(folder, name), typeof value === "string" ? value : JSON.stringify(value));
  return join(folder, name);
}

async function loadFailure(path: string): Promise<AlidadeError> {
  const error = await loadTasks(path).then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof AlidadeError, String(error));
  assert.equal(error.code, "task_invalid");
  return error;
}

test("a row becomes a task: lists also as JSON text, the test patch as hidden tests, the gold patch kept aside", async (t) => {
  const [task] = await loadTasks(await fileOf(t, row));
  assert.ok(task?.grader.kind === "tests");
  assert.deepEqual([task.task_id, task.instruction, task.data_source], ["row-1", "It is broken.", "owner/name"]);
  assert.deepEqual([task.grader.fail_to_pass, task.grader.pass_to_pass], [["second"], ["first"]]);
  assert.equal(task.gold_patch, row.patch);
  const hidden = await readFolder(TestsSpec.parse(task.grader).tests as string);
  assert.deepEqual(
    hidden.map((file) => [file.path, file.content.toString()]),
    [["test/a.test.js", "// first\n// second\n"]],
  );
  assert.equal(await readFile(join(task.environment.files as string, "test/a.test.js"), "utf8"), "// first\n");
});

test("a .json list of rows is read like lines", async (t) => {
  const tasks = await loadTasks(await fileOf(t, [row, { ...row, instance_id: "row-2" }], "rows.json"));
  assert.deepEqual(
    tasks.map((task) => task.task_id),
    ["row-1", "row-2"],
  );
});

test("a tree is read once, however its rows are mixed with others', and tasks keep the order of the rows", async (t) => {
  const rows = Array.from({ length: 20 }, (_, index) => {
    const source = { ...row.source, path: index % 2 === 0 ? "tree" : "other" };
    return { ...row, instance_id: `row-${index}`, test_patch: testPatch.replace("second", `second ${index}`), source };
  });
  const path = await fileOf(t, rows, "rows.json");
  const folder = await realpath(dirname(path));
  await cp(join(folder, "tree"), join(folder, "other"), { recursive: true });
  const read = t.mock.method(fs, "readFile");
  t.after(syncBuiltinESMExports);
  syncBuiltinESMExports();
  const tasks = await loadTasks(path);
  const readings = read.mock.calls.map((call) => String(call.arguments[0])).filter((name) => name.endsWith("index.js"));
  assert.deepEqual(readings.sort(), [join(folder, "other/index.js"), join(folder, "tree/index.js")]);
  for (const [index, task] of tasks.entries()) {
    assert.ok(task.grader.kind === "tests");
    assert.deepEqual([task.task_id, task.environment.files], [`row-${index}`, join(folder, index % 2 === 0 ? "tree" : "other")]);
    assert.match(
      await readFile(join(TestsSpec.parse(task.grader).tests as string, "test/a.test.js"), "utf8"),
      new RegExp(`second ${index}\n`),
    );
  }
});

const npm = {
  kind: "npm",
  package: "qs",
  base: { version: "6.11.0", integrity: `sha512-${"A".repeat(86)}==` },
  fixed: { version: "6.11.1", integrity: `sha512-${"A".repeat(86)}==` },
  tests: ["test/**"],
};

for (const [title, change, field] of [
  ["no problem statement", { problem_statement: undefined }, "problem_statement"],
  ["a list that is no JSON", { FAIL_TO_PASS: "a, b" }, "FAIL_TO_PASS"],
  ["a list of numbers", { PASS_TO_PASS: [1] }, "PASS_TO_PASS.0"],
  ["nothing that must begin to pass", { FAIL_TO_PASS: [] }, "FAIL_TO_PASS"],
  ["no source", { source: null }, "source"],
  ["an unknown source", { source: { kind: "ftp" } }, "source.kind"],
  ["an unknown field of the source", { source: { ...row.source, url: "x" } }, "source.url"],
  ["a source outside the folder", { source: { ...row.source, path: "../.." } }, "source.path"],
  ["an unknown parser", { log_parser: "guess" }, "log_parser"],
  ["a package name that npm would read as an option", { source: { ...npm, package: "--help" } }, "source.package"],
  ["a version range", { source: { ...npm, base: { ...npm.base, version: "^1.0.0" } } }, "source.base.version"],
  ["a version without integrity", { source: { ...npm, fixed: { version: "1.2.3" } } }, "source.fixed.integrity"],
] as const) {
  test(`${title} is refused by line and field`, async (t) => {
    const path = await fileOf(t, `${JSON.stringify(row)}\n${JSON.stringify({ ...row, ...change, instance_id: "bad" })}\n`);
    const error = await loadFailure(path);
    assert.equal(error.param, field);
    assert.ok(error.message.includes(`${path}:2`), error.message);
  });
}

test("a line that is no JSON is refused by its number", async (t) => {
  const path = await fileOf(t, `${JSON.stringify(row)}\n{"instance_id"\n`);
  assert.match((await loadFailure(path)).message, /rows\.jsonl:2: the row: is not JSON/);
});

test("a test patch that does not fit its tree is refused", async (t) => {
  assert.match(
    (await loadFailure(await fileOf(t, { ...row, test_patch: testPatch.replace("// first", "// other") }))).message,
    /a\.test\.js differs at line 1/,
  );
});

test("of a file of rows the bad ones are left out and named by their lines", async (t) => {
  const rows = [row, { ...row, instance_id: "row-2", repo: 7 }, { ...row, instance_id: "row-3", source: { ...row.source, path: "gone" } }];
  const file = await fileOf(t, [...rows.map((one) => JSON.stringify(one)), "{"].join("\n"));
  const named: string[] = [];
  const loaded = await loadTasks(file, { onLeftOut: ({ message }) => void named.push(message) });
  assert.deepEqual(
    loaded.map(({ task_id }) => task_id),
    ["row-1"],
  );
  assert.deepEqual(named.map((message) => /rows\.jsonl:(\d+): ([\w.]+)/.exec(message)?.slice(1)).sort(), [
    ["2", "repo"],
    ["3", "source.path"],
    ["4", "the"],
  ]);
});
