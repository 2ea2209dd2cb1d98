import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { currentOwner } from "../../../base/host/owner.ts";
import { checkTask } from "../../../graders/check.ts";
import { TestsSpec } from "../../../graders/tests.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { fixingCommits, type PassedOver } from "../../../tasks/made/commit-fixes.ts";
import { type MakeOptions, makeTasks } from "../../../tasks/made/make-tasks.ts";
import { Repository } from "../../../tasks/made/repository.ts";
import { usualTests } from "../../../tasks/made/test-files.ts";
import { GitRepository } from "../../fakes/machine/git-repository.ts";
import { need } from "../../needs.ts";

const owner = { run_id: "run-test-made", owner: await currentOwner() };

async function emptyFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-made-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** A test that reports in TAP whether each word stands in the source. */
const asks = (...words: string[]) =>
  `echo 1..${words.length}\n${words.map((word) => `grep -q ${word} source.txt || printf 'not '; echo 'ok - test_${word}'`).join("\n")}\n`;

/** Tests run in the process sandbox here: they are our own. */
async function makeFrom(t: TestContext, source: GitRepository, out: string, more: Partial<MakeOptions> = {}) {
  const passedOver: PassedOver = { merge: 0, first_commit: 0, no_test_changed: 0, only_tests_changed: 0 };
  const said: string[] = [];
  const how = { test: "sh tests/run.sh", parser: "tap", image: null, tests: usualTests, test_seconds: 120, memory_mb: 256 } as const;
  await using repository = await Repository.copy(source.folder, owner, t.signal);
  const tried = await makeTasks(fixingCommits(repository, { tests: how.tests }, passedOver), {
    ...{ out, source: repository.source, how, limit: 100, backend: localProcess, owner, signal: t.signal },
    progress: (line) => said.push(line),
    ...more,
  });
  const ends = Object.fromEntries(tried.map((one) => [one.title, one.state === "kept" ? one.task_id : one.reason]));
  return { tried, ends, said, passedOver };
}

test("commits whose tests fail before them and pass after them become tasks that check holds, and each other says why not", async (t) => {
  if (!(await need(t, "git"))) return;
  const [repository, out] = [await GitRepository.make(t), await emptyFolder(t)];
  const counter = join(out, "..", `${out.split("/").at(-1)}-counter`);
  t.after(() => rm(counter, { force: true }));
  await repository.commit("Begin", { "source.txt": "one\n", "old.txt": "x\n", "tests/run.sh": asks("one"), "tests/gone.sh": "echo\n" });
  const message = "Say two (#12)\n\nsource.txt lacks it; test_two in tests/run.sh shows it.\n\nSigned-off-by: Ann <ann@example.org>";
  const [sources, tests] = [
    { "source.txt": "one\ntwo\n", "old.txt": null },
    { "tests/run.sh": asks("one", "two"), "tests/gone.sh": null },
  ];
  const fix = await repository.commit(message, { ...sources, ...tests });
  await repository.commit("Document", { README: "words\n" });
  await repository.commit("Test more", { "tests/run.sh": asks("one", "two", "one") });
  await repository.commit("Rename", { "source.txt": "one\ntwo\n#\n", "tests/run.sh": `# moved\n${asks("one", "two")}` });
  const flaky = `echo x >> ${counter}; [ $(wc -l < ${counter}) = 1 ] && source=ok || source='not ok'; echo 1..1; echo "$source - test_luck"\n`;
  await repository.commit("Luck", { "source.txt": "one\ntwo\nluck\n", "tests/run.sh": flaky });
  await repository.commit("Break", { "source.txt": "one\ntwo\n", "tests/run.sh": "echo 1..3; echo ok\n" });
  await repository.commit("Picture", { "picture.bin": Buffer.from([0xff, 0, 1]), "tests/run.sh": asks("one") });
  await symlink("/etc/passwd", join(repository.folder, "link"));
  await repository.commit("Link", { "tests/run.sh": asks("one", "two") });
  await repository.commit("(#7)", { "source.txt": "one\n", "tests/run.sh": asks("one") });
  repository.git("checkout", "-q", "-b", "side", "HEAD~1");
  await repository.commit("Side", { README: "other words\n" });
  repository.git("checkout", "-q", "main");
  repository.git("merge", "-q", "--no-ff", "-m", "Merge", "side");

  const { ends, passedOver } = await makeFrom(t, repository, out);
  assert.deepEqual(ends, {
    "(#7)": "no_message",
    Link: "not_files",
    Picture: "not_text",
    Break: "no_report",
    Luck: "flaky",
    Rename: "no_fail_to_pass",
    "Say two (#12)": `slug-${fix.slice(0, 12)}`,
  });
  assert.deepEqual(passedOver, { merge: 1, first_commit: 1, no_test_changed: 2, only_tests_changed: 1 });
  assert.deepEqual((await readdir(out)).sort(), [`slug-${fix.slice(0, 12)}`, "tried.json"]);

  const [task] = await loadTasks(out);
  assert.ok(task);
  const spec = TestsSpec.parse(task.grader);
  assert.deepEqual([spec.fail_to_pass, spec.pass_to_pass], [["test_two"], ["test_one"]]);
  assert.match(task.instruction, /> Say two \[…\]\n>\n> source\.txt lacks it; \[…\] in \[…\] shows it\.\n$/);
  assert.deepEqual([task.labels.commit, task.labels.repo, task.labels.instruction], [fix, "slug", "commit message"]);
  const { passed, runs } = await checkTask(task, localProcess, { times: 1, signal: t.signal, ...owner });
  assert.deepEqual([passed, runs.map(({ verdict }) => verdict.reward)], [true, [1, 0]]);
});

test("a second run goes on: it tries no change again, and stops at the limit", async (t) => {
  if (!(await need(t, "git"))) return;
  const [repository, out] = [await GitRepository.make(t), await emptyFolder(t)];
  await repository.commit("Begin", { "source.txt": "one\n", "tests/run.sh": asks("one") });
  await repository.commit("Two", { "source.txt": "one two\n", "tests/run.sh": asks("one", "two") });
  await repository.commit("Three", { "source.txt": "one two three\n", "tests/run.sh": asks("one", "two", "three") });
  const stop = new AbortController();
  const stopped = makeFrom(t, repository, out, { signal: stop.signal, progress: () => stop.abort() });
  await assert.rejects(stopped, { code: "cancelled", message: /the same command goes on/ });
  const first = await makeFrom(t, repository, out, { limit: 1 });
  assert.deepEqual([Object.keys(first.ends), first.said.length], [["Three"], 0]);
  const second = await makeFrom(t, repository, out);
  assert.deepEqual([Object.keys(second.ends), second.said.length], [["Three", "Two"], 1]);
  assert.deepEqual((await makeFrom(t, repository, out)).said, []);

  const how = { test: "true", parser: "tap", image: null, tests: usualTests, test_seconds: 120, memory_mb: 256 } as const;
  await assert.rejects(makeFrom(t, repository, out, { how }), {
    code: "config_invalid",
    param: "test",
    message: /name another folder with --out/,
  });
  await writeFile(join(out, "tried.json"), "{");
  await assert.rejects(makeFrom(t, repository, out), { code: "task_invalid", message: /tried\.json: the file: is not JSON/ });
});

test("what the machine fails at ends the run, and the change is tried again by the next one", async (t) => {
  if (!(await need(t, "git"))) return;
  const [repository, out] = [await GitRepository.make(t), await emptyFolder(t)];
  await repository.commit("Begin", { "source.txt": "one\n", "tests/run.sh": asks("one") });
  await repository.commit("Two", { "source.txt": "one two\n", "tests/run.sh": asks("one", "two") });
  const broken = { ...localProcess, create: () => Promise.reject(new Error("the engine is gone")) };
  await assert.rejects(makeFrom(t, repository, out, { backend: broken }), /the engine is gone/);
  assert.deepEqual(await readdir(join(out, ".drafts")), []);
  assert.deepEqual(Object.keys((await makeFrom(t, repository, out)).ends), ["Two"]);
  assert.match(await readFile(join(out, "tried.json"), "utf8"), /"state": "kept"/);
});

test("tests that say something else the third time they run apart from the work are graded with it", async (t) => {
  for (const what of ["git", "python"] as const) if (!(await need(t, what))) return;
  const [repository, out] = [await GitRepository.make(t), await emptyFolder(t)];
  const counter = join(out, "runs");
  const counted = `    with open(${JSON.stringify(counter)}, "a+") as file:\n      file.write("x")\n      file.seek(0)\n      runs = len(file.read())\n`;
  const folds = `  def test_folds(self):\n${counted}    self.assertEqual(slug("A") if runs != 6 else "?", "a")\n`;
  const tests = `import unittest\nfrom slug import slug\nclass SlugTest(unittest.TestCase):\n${folds}`;
  await repository.commit("Begin", { "slug.py": "slug = lambda text: text\n", "test_slug.py": "" });
  await repository.commit("Fold letters", { "slug.py": "slug = lambda text: text.lower()\n", "test_slug.py": tests });
  const how = {
    test: "python3 -m unittest -v",
    parser: "unittest",
    image: null,
    tests: usualTests,
    test_seconds: 120,
    memory_mb: 256,
  } as const;
  const { tried } = await makeFrom(t, repository, out, { how });
  const [one] = tried;
  assert.deepEqual([one?.state, one?.state === "kept" && one.work_runs, (await readFile(counter, "utf8")).length], ["kept", undefined, 6]);
});

test("tests of our own runner are graded apart from the work where that says the same, and otherwise in one process by name", async (t) => {
  if (!(await need(t, "git"))) return;
  const [repository, out] = [await GitRepository.make(t), await emptyFolder(t)];
  const testOf = (body: string) => `import assert from "node:assert"; import { test } from "node:test";
import { add, note } from "../add.js"; import { two } from "./two.js";\n${body}\n`;
  const adds = 'test("adds", () => assert.equal(add(two, 3), 5));';
  const notes = 'test("notes", () => { const list = []; note(list); assert.deepEqual(list, [1]); });';
  const module = { "package.json": '{"type": "module"}', "test/two.js": "export const two = 2;\n" };
  const [wrong, right] = ["export const add = (a, b) => a - b;\n", "export const add = (a, b) => a + b;\n"];
  await repository.commit("Begin", { ...module, "add.js": `${wrong}export const note = () => 0;\n`, "test/a.test.js": testOf("") });
  await repository.commit("Add", { "add.js": `${right}export const note = () => 0;\n`, "test/a.test.js": testOf(adds) });
  await repository.commit("Note", {
    "add.js": `${right}export const note = (list) => list.push(1);\n`,
    "test/a.test.js": testOf(`${adds}\n${notes}`),
  });
  const how = {
    test: "node {runner} test",
    parser: "node-test",
    image: null,
    tests: usualTests,
    test_seconds: 120,
    memory_mb: 256,
  } as const;
  const { tried } = await makeFrom(t, repository, out, { how });
  assert.deepEqual(
    tried.map((one) => [one.title, one.state === "kept" && one.work_runs]),
    [
      ["Note", undefined],
      ["Add", "apart"],
    ],
    JSON.stringify(tried),
  );
  const specs = (await loadTasks(out)).map(({ instruction, grader }) => [/> (Add|Note)/.exec(instruction)?.[1], grader.work_runs]);
  assert.deepEqual(specs.sort(), [
    ["Add", "apart"],
    ["Note", "together"],
  ]);
});
