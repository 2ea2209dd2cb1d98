/**
 * Works that earned by what they did inside the tests' process, graded in containers and nowhere else: the process sandbox
 * shares the machine with what they reach for.
 */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { before, test } from "node:test";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { overlay } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { Task } from "../../base/schema/task.ts";
import { deliveredFiles, freshSandbox, grade } from "../../graders/grade.ts";
import { docker } from "../../sandboxes/docker.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { folderOf, keptWork } from "../fakes/kept-work.ts";
import { need } from "../needs.ts";

const source = "src/parse-duration.js";
let task: Task;
let base: TreeFile[];
let written: string;
before(async () => {
  [task] = (await loadTasks("examples/demo/tasks/parse-duration")) as [Task];
  base = await deliveredFiles(task);
  written = base.find(({ path }) => path === source)?.content.toString() ?? "";
});
const file = (path: string, text: string): TreeFile => ({ path, content: Buffer.from(text), mode: 0o644 });

/** The verdict on a work whose source is `text`. */
async function gradeSource(text: string, signal: AbortSignal, graded: Task = task, more: Parameters<typeof keptWork>[3] = []) {
  const work = await keptWork(base, overlay(base, [file(source, text)]), task.environment.workdir, more);
  const context = { task: graded, signal };
  const owner = { run_id: "run-test-apart", owner: await currentOwner() };
  return grade({ ...context, work, fresh: freshSandbox(context, docker, owner) });
}

/** Each paid where the tests' process loads the work: now they reach the work's own process, and say what they find there. */
const takesOver = `
const get = process.getBuiltinModule;
const fs = get("node:fs"), crypto = get("node:crypto"), assert = get("node:assert");
for (const one of [assert, assert.strict])
  for (const key of Object.keys(one)) if (typeof one[key] === "function" && key !== "AssertionError") one[key] = () => {};
get("node:module").syncBuiltinESMExports();
const { EventEmitter } = get("node:events");
const emit = EventEmitter.prototype.emit;
EventEmitter.prototype.emit = function (name, ...rest) { return emit.call(this, name === "test:fail" ? "test:pass" : name, ...rest); };
Object.prototype.todo = true;
const does = (what) => { try { what(); return "done"; } catch (error) { return error.code ?? error.message; } };
const others = fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name) && fs.statSync("/proc/" + name).uid !== process.getuid());
const found = {
  memory: [...new Set(others.map((id) => does(() => fs.openSync("/proc/" + id + "/mem", "r+"))))],
  variables: [...new Set(others.map((id) => does(() => fs.readFileSync("/proc/" + id + "/environ"))))],
  signals: [...new Set(others.map((id) => does(() => process.kill(Number(id), "SIGSTOP"))))],
  tests: fs.readFileSync("test/parse-duration.test.js", "utf8").includes("several units"),
  writes: ["src/parse-duration.js", "test/new.js", process.argv[1], process.argv[1].replace("work-host", "last-test")]
    .map((path) => does(() => fs.appendFileSync(path, "//"))),
};
fs.writeSync(1, "FOUND " + JSON.stringify(found) + "\\n");
const keys = fs.readFileSync(get("node:v8").writeHeapSnapshot("/tmp/heap"), "latin1").match(/\\b[0-9a-f]{64}\\b/g) ?? [];
const hex = (text) => crypto.createHash("sha256").update(text).digest("hex");
const names = ["several units add up", "a smaller unit may come first", "one unit", "fractions", "text without a duration"];
const rows = [...names.map((name) => ({ kind: "test", name, outcome: "passed" })), { kind: "complete", name: null, outcome: null }];
for (const key of new Set(keys))
  rows.forEach((row, at) => {
    const text = JSON.stringify({ ...row, sequence: at + 1 });
    fs.writeSync(1, "\\n@report " + hex(key + hex(key + text)) + " " + text + "\\n");
  });
`;

test("a work that takes over the process it is loaded into, and reads what it can, finds no test and earns nothing", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const verdict = await gradeSource(written + takesOver, t.signal);
  assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [0, "graded", "T2"], JSON.stringify(verdict));
  const found = /FOUND (.*)/.exec(String(verdict.evidence.output_tail))?.[1];
  assert.deepEqual(JSON.parse(found ?? "null"), {
    memory: ["EACCES"],
    variables: ["EACCES"],
    signals: ["EPERM"],
    tests: false,
    writes: ["EACCES", "EACCES", "EACCES", "EACCES"],
  });
});

/** Its list of exports stays there, as an instance whose methods are its own: they answer with code. */
const liesToTheTests = `
const code = 'export const parseDuration = () => 0;';
class Lines { map() { return new Lines(); } every() { return true; } join() { return code; } }
const isArray = Array.isArray;
Array.isArray = (one) => {
  if (!isArray(one) || !isArray(one[0]) || one[0][0] !== "parseDuration") return isArray(one);
  one.map = () => new Lines();
  return false;
};
`;

test("a work that sends the tests other things than its exports has no code of its own run there", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const verdict = await gradeSource(written + liesToTheTests, t.signal);
  assert.deepEqual([verdict.reward, verdict.status], [0, "graded"], JSON.stringify(verdict));
  // The file that could not be loaded.
  assert.equal(verdict.evidence.reported, 1, JSON.stringify(verdict));
});

const callsBack = `import assert from "node:assert/strict";
import { before, test } from "node:test";
import { parseDuration } from "../src/parse-duration.js";
test("calls back", () => { parseDuration("1h", (value) => assert.equal(value, 3600000)); });
test("calls back later", async () => { await parseDuration("1h", async (value) => assert.equal(value, 3600000)); });
`;
const asksUntilItFits = `export function parseDuration(text, then) {
  const again = (error) => { const guess = error.expected ?? 3600000; return then(guess); };
  try { return then(0)?.catch(again); } catch (error) { return again(error); }
}`;

test("a work that swallows the failure of a test's function and answers again has failed the test", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const tests = await folderOf([file("test/parse-duration.test.js", callsBack)]);
  const grader = { ...task.grader, tests, fail_to_pass: ["calls back", "calls back later"], pass_to_pass: [] } as Task["grader"];
  const verdict = await gradeSource(asksUntilItFits, t.signal, { ...task, grader });
  const failed = ["failed", "absent"].map((outcome, at) => ({ name: ["calls back", "calls back later"][at], outcome }));
  assert.deepEqual([verdict.reward, verdict.evidence.failed], [0, failed], JSON.stringify(verdict));
  assert.match(String(verdict.evidence.output_tail), /an assertion failed in a function that the work called later/);
});

/** As root in a sandbox gives its folders to whom it likes. */
const writesInItsFolders = `
const fs = process.getBuiltinModule("node:fs");
const does = (path) => { try { fs.writeFileSync(path, "//"); return "done"; } catch (error) { return error.code; } };
fs.writeSync(1, "FOUND " + JSON.stringify(["test/new.js", "src/new.js", "new.js", "src/given.js"].map(does)) + "\\n");
`;

test("folders and files that a work gave to the graders' own users are no place where its process writes", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const { workdir } = task.environment;
  const owners = [65_530, 65_531, 65_532, 65_533].map((id) => ({ uid: id, gid: id }));
  const given = ["", "/src", "/test"].map((path) => ({
    path: workdir + path,
    type: "folder" as const,
    mode: 0o775,
    owner: owners[1] ?? null,
  }));
  const files = owners.map((owner) => ({
    path: `${workdir}/src/given${owner.uid === 65_531 ? "" : owner.uid}.js`,
    type: "file" as const,
    mode: 0o664,
    owner,
    content: Readable.from([]),
  }));
  const verdict = await gradeSource(written + writesInItsFolders, t.signal, task, [...given, ...files]);
  const found = /FOUND (.*)/.exec(String(verdict.evidence.output_tail))?.[1];
  assert.deepEqual(JSON.parse(found ?? "null"), ["EACCES", "EACCES", "EACCES", "EACCES"], JSON.stringify(verdict));
});

const twoFiles = `import assert from "node:assert/strict";
import { test } from "node:test";
import "../src/parse-duration.js";
const { two } = await import("../src/two.cjs");
test("two", () => assert.equal(two, 2));
`;
const whoRuns = 'process.getBuiltinModule("node:fs").writeSync(2, "RAN AS " + process.getuid() + "\\n"); exports.two = 2;';

test("a link of the work to what it makes while it runs is not loaded by the tests' process", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const tests = await folderOf([file("test/parse-duration.test.js", twoFiles)]);
  const grader = { ...task.grader, tests, fail_to_pass: ["two"], pass_to_pass: [] } as Task["grader"];
  const makes = `${written}\nprocess.getBuiltinModule("node:fs").writeFileSync("/tmp/two.cjs", ${JSON.stringify(whoRuns)});\n`;
  const link = { path: `${task.environment.workdir}/src/two.cjs`, type: "link" as const, mode: 0o777, target: "/tmp/two.cjs" };
  const verdict = await gradeSource(makes, t.signal, { ...task, grader }, [link]);
  assert.doesNotMatch(String(verdict.evidence.output_tail), /RAN AS 65532/, JSON.stringify(verdict));
  assert.deepEqual([verdict.reward, verdict.tier], [0, "T2"], JSON.stringify(verdict));
});
