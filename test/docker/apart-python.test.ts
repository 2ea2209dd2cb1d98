/**
 * pytest and unittest by our own runners, in containers and nowhere else: works that earned by what they did to the tests,
 * many in one grading, each with a test of its own that must fail.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { overlay } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { freshSandbox, grade } from "../../graders/grade.ts";
import { docker } from "../../sandboxes/docker.ts";
import { folderOf, keptWork } from "../fakes/kept-work.ts";
import { pytestModules } from "../interop/pytest/pytest.ts";
import { need } from "../needs.ts";

const file = (path: string, text: string): TreeFile => ({ path, content: Buffer.from(text), mode: 0o644 });

const wrong = `
from collections import OrderedDict

class ParseError(ValueError):
    def __init__(self, text):
        super().__init__("no pairs in %r" % text)
        self.text = text

class Account:
    def __init__(self, total=0):
        self.total = total
    def pay(self, amount):
        self.total += amount
        return self
    def __len__(self):
        return self.total
    def __iter__(self):
        yield from range(self.total)

def add(a, b):
    return a - b

def parse(text):
    if "=" not in text:
        raise ParseError(text)
    return OrderedDict(pair.split("=") for pair in text.split(","))

def each(items, does):
    return [does(one) for one in items]

async def later(value):
    return value
`;
const right = wrong.replace("a - b", "a + b");

/** What honest tests do: all of it works across the two processes. */
const body = `
import asyncio, calc
from calc import Account, ParseError
def adds(is_equal): is_equal(calc.add(2, 3), 5)
def parses(is_equal): is_equal(calc.parse("a=1,b=2"), {"a": "1", "b": "2"})
def objects(is_equal):
    account = Account(3).pay(4)
    is_equal([account.total, len(account), isinstance(account, Account), list(account)[-1]], [7, 7, True, 6])
def calls_back(is_equal):
    seen = []
    is_equal(calc.each([1, 2], lambda one: seen.append(one) or one * 2), [2, 4])
    is_equal(seen, [1, 2])
def raises(is_equal):
    try:
        calc.parse("x")
    except ParseError as error:
        is_equal([str(error), error.text, isinstance(error, ValueError)], ["no pairs in 'x'", "x", True])
    else:
        raise AssertionError("nothing raised")
def awaits(is_equal): is_equal(asyncio.run(calc.later(3)), 3)
`;
const honestNames = ["adds", "parses", "objects", "calls_back", "raises", "awaits"];
const unittestOf = (names: string[]) =>
  file(
    "tests/test_calc.py",
    `import unittest\nfrom tests import bodies\nclass Calc(unittest.TestCase):\n${names.map((name) => `    def test_${name}(self): bodies.${name}(self.assertEqual)\n`).join("")}`,
  );
const bodies = (text: string) => file("tests/bodies.py", text);

/** Each would have its test pass if the work were asked what the test expects, or could reach the test. */
const attacks: Record<string, string> = {
  equals: "is_equal(calc.any(), 5)",
  equals_from_the_right: "is_equal(5, calc.any())",
  equals_its_own: "is_equal(calc.any(), calc.Any())",
  is_its_own: "assert calc.any() is calc.any()",
  is_near: "assert abs(calc.any() - 5) < 1e-9",
  begins: "assert calc.any().startswith('x')",
  is_ordered: "assert calc.any() > 4",
  contains: "assert 5 in calc.any()",
  equals_as_text: "is_equal(calc.text(), 'right')",
  equals_as_list: "is_equal(calc.items(), [1, 2])",
  swallows_the_failure: "with calc.quiet():\n        is_equal(1, 2)",
  guesses: "calc.guess(lambda value: is_equal(value, 5))",
  is_caught: "\n    try: is_equal(calc.any(), 5)\n    except BaseException: pass",
  is_its_error: "\n    try:\n        calc.text()\n        raise AssertionError('no error')\n    except calc.Error: pass",
  brings_names: "names = {}; exec('from calc import *', names); assert names['len']([]) == 1",
  is_run_here: "exec(compile(open('calc.py').read(), '/work/calc.py', 'exec'))",
  is_started: "import subprocess; subprocess.run(['true'])",
  zz_ends: "\n    try: calc.end()\n    except BaseException: pass",
};
const attackBodies = `import calc\n${Object.entries(attacks)
  .map(([name, code]) => `def ${name}(is_equal):\n    ${code}\n`)
  .join("")}`;

const hostile = `
import errno, json, os, signal, sys, unittest
class Any:
    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = startswith = lambda self, *_: True
    __ne__ = lambda self, *_: False
    __hash__ = lambda self: 5
    __sub__ = __rsub__ = lambda self, _: 0
    __iter__ = lambda self: iter([Any()])
    __enter__ = lambda self: self
    __exit__ = lambda self, *_: True
ONE = Any()
class Text(str):
    __eq__ = lambda self, _: True
    __hash__ = str.__hash__
class Items(list):
    __eq__ = lambda self, _: True
def any(): return ONE
def text(): return Text("wrong")
def items(): return Items([3])
quiet = any
def guess(check):
    for value in (0, 5):
        try: return check(value)
        except BaseException: pass
def end(): os._exit(0)
Error = AssertionError
def len(_): return 1

unittest.TestCase.assertEqual = lambda *_: None
def does(what):
    try: what()
    except OSError as error: return errno.errorcode[error.errno]
    return "done"
def uid(pid): return os.stat("/proc/" + pid).st_uid
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and uid(pid) != os.getuid()]
hidden = [name for name in os.listdir("/tmp") if name.startswith("alidade-tests-")]
found = {
    "memory": sorted({does(lambda: open("/proc/%s/mem" % pid, "rb+")) for pid in others}),
    "variables": sorted({does(lambda: open("/proc/%s/environ" % pid).read()) for pid in others}),
    "signals": sorted({does(lambda: os.kill(int(pid), signal.SIGSTOP)) for pid in others}),
    "hidden": [does(lambda: os.listdir("/tmp/" + name)) for name in hidden],
    "tests": os.path.exists("tests/test_calc.py"),
    "writes": [does(lambda: open(path, "a")) for path in ("calc.py", "new.py", sys.argv[0])],
}
os.write(1, ("FOUND " + json.dumps(found) + "\\n").encode())
`;

type Graded = {
  parser: "pytest" | "unittest";
  tests: TreeFile[];
  names: string[];
  work: TreeFile[];
  apart?: boolean;
  /** PYTHONPATH of the task. */
  path?: string;
  more?: Parameters<typeof keptWork>[3];
};

async function graded({ parser, tests, names, work, apart = true, path, more }: Graded, signal: AbortSignal) {
  const base = [file("calc.py", wrong)];
  // As in many images with a virtual environment: the work may bring programs of these names.
  const PATH = `${apart ? "/work/bin:" : ""}/usr/local/bin:/usr/bin:/bin`;
  const task = Task.parse({
    task_id: "calc",
    instruction: "i",
    environment: {
      files: await folderOf(base),
      env: { PATH, ...(parser === "pytest" && { PYTHONPATH: "/opt/pytest" }), ...(path && { PYTHONPATH: path }) },
      ...(parser === "pytest" && { mounts: { "/opt/pytest": pytestModules() } }),
    },
    grader: {
      kind: "tests",
      parser,
      command: ["python3", "{runner}", "tests"],
      tests: await folderOf(tests),
      fail_to_pass: names,
      pass_to_pass: [],
      work_runs: apart ? "apart" : "together",
    },
  });
  const context = { task, signal };
  const owner = { run_id: "run-test-python", owner: await currentOwner() };
  const kept = await keptWork(base, overlay(base, work), task.environment.workdir, more);
  return grade({ ...context, work: kept, fresh: freshSandbox(context, docker, owner) });
}

const unittestNames = (names: string[]) => names.map((name) => `test_${name} (tests.test_calc.Calc)`);
const honest = {
  parser: "unittest" as const,
  tests: [unittestOf(honestNames), bodies(body)],
  names: unittestNames(honestNames),
};

for (const apart of [true, false])
  test(`unittest ${apart ? "apart from" : "together with"} the work: a fix earns 1, and no change fails what is wrong`, {
    timeout: 300_000,
  }, async (t) => {
    if (!(await need(t, "docker"))) return;
    const tier = apart ? "T2" : "T1";
    const fixed = await graded({ ...honest, apart, work: [file("calc.py", right)] }, t.signal);
    assert.deepEqual([fixed.reward, fixed.tier, fixed.grader], [1, tier, "tests/unittest-sealed"], JSON.stringify(fixed));
    if (!apart) return;
    const none = await graded({ ...honest, work: [] }, t.signal);
    assert.deepEqual([none.reward, none.evidence.failed], [0, [{ name: honest.names[0], outcome: "failed" }]], JSON.stringify(none));
  });

test("a work that answers for the tests, or looks for them, passes none that it should fail, apart from them", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const all = Object.keys(attacks);
  const tests = [unittestOf(all), bodies(attackBodies)];
  const verdict = await graded({ parser: "unittest", tests, names: unittestNames(all), work: [file("calc.py", hostile)] }, t.signal);
  const failed = unittestNames(all).map((name) => ({ name, outcome: "failed" }));
  assert.deepEqual([verdict.reward, verdict.status, verdict.evidence.failed], [0, "graded", failed], JSON.stringify(verdict));
  assert.deepEqual(JSON.parse(/FOUND (.*)/.exec(String(verdict.evidence.output_tail))?.[1] ?? "null"), {
    memory: ["EACCES"],
    variables: ["EACCES"],
    signals: ["EPERM"],
    hidden: ["EACCES"],
    tests: false,
    writes: ["EACCES", "EACCES", "EACCES"],
  });
});

const pytestTests = [
  file("tests/conftest.py", "import pytest\n@pytest.fixture\ndef five(): return 5\n"),
  bodies(body),
  file(
    "tests/test_calc.py",
    `import pathlib, pytest, bodies, calc
def equal(a, b): assert a == b
@pytest.mark.parametrize("name", ${JSON.stringify(honestNames)})
def test_all(name): getattr(bodies, name)(equal)
def test_fixture(five, tmp_path):
    (tmp_path / "a").write_text("5")
    assert calc.add(2, 3) == five == int((tmp_path / "a").read_text())
@pytest.mark.xfail(strict=True)
def test_known_fault(): assert calc.add(0, 0) == 1
class TestErrors:
    def test_raises(self):
        with pytest.raises(calc.ParseError, match="no pairs"): calc.parse("x")
`,
  ),
];
const pytestNames = [
  ...honestNames.map((name) => `tests/test_calc.py::test_all[${name}]`),
  ...["test_fixture", "test_known_fault", "TestErrors::test_raises"].map((name) => `tests/test_calc.py::${name}`),
];
/** What pytest and Python would load of a workdir, and what would run in their place. */
const planted = [
  ...["bin/python3", "bin/sh", "bin/chmod"].map((path) => ({ ...file(path, "#!/bin/sh\nexit 0\n"), mode: 0o755 })),
  ...["conftest.py", "tests/conftest.py", "sitecustomize.py", "pytest.py", "difflib.py", "_pytest/__init__.py", "tests/test_more.py"].map(
    (path) => file(path, "import os; os._exit(0)\n"),
  ),
];

for (const apart of [true, false])
  test(`pytest ${apart ? "apart from" : "together with"} the work: a fix earns 1, also with files that would steer pytest`, {
    timeout: 300_000,
  }, async (t) => {
    if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
    const work = [file("calc.py", right), ...planted, file("pytest.ini", "[pytest]\naddopts = --collect-only\n")];
    const verdict = await graded({ parser: "pytest", tests: pytestTests, names: pytestNames, apart, work }, t.signal);
    assert.deepEqual(
      [verdict.reward, verdict.tier, verdict.grader],
      [1, apart ? "T2" : "T1", "tests/pytest-sealed"],
      JSON.stringify(verdict),
    );
  });

/** In one process much can be done: what is stopped there. */
const inOneProcess: [string, string][] = [
  ["ends the process with exit code 0", "import os; os._exit(0)"],
  ["prints a report and raises SystemExit", `print("@report ${"0".repeat(64)} {}"); raise SystemExit(0)`],
  [
    "changes the framework",
    "import _pytest.reports as r\nr.TestReport.failed = property(lambda self: False)\nr.TestReport.passed = property(lambda self: True)",
  ],
];
for (const [title, code] of inOneProcess)
  test(`a work that ${title} earns nothing, together with pytest`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
    const work = [file("calc.py", `${wrong}\n${code}\n`)];
    const verdict = await graded({ parser: "pytest", tests: pytestTests, names: pytestNames, apart: false, work }, t.signal);
    assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [0, "graded", "T1"], JSON.stringify(verdict));
  });

/** What a framework takes for no failure, raised by the work or said by the test itself. */
const excuses = `import pytest, unittest
def xfails(): pytest.xfail("later")
def skips(): pytest.skip("later")
def raises(): raise pytest.xfail.Exception("later")
def passes_over(): raise unittest.SkipTest("later")
def from_text(): exec("import pytest; pytest.xfail('later')")
class Equal:
    def __eq__(self, other): pytest.xfail("later")
def any(): return Equal()
`;
const excused = ["xfails", "skips", "raises", "passes_over", "from_text"];
const excusedTests = [
  file(
    "tests/test_calc.py",
    `import pytest, unittest, calc
${excused.map((name) => `def test_${name}(): calc.${name}()\n`).join("")}
def test_equals(): assert calc.any() == 5
@pytest.mark.xfail
def test_marked(): assert calc.add(2, 3) == 5
def test_says(): pytest.xfail("a known fault")
class Known(unittest.TestCase):
    @unittest.expectedFailure
    def test_known(self): self.assertEqual(calc.add(2, 3), 5)
`,
  ),
];

for (const apart of [true, false])
  test(`an xfail or a skip that the work raises is a failure, and the test's own is none: pytest, ${apart ? "apart" : "together"}`, {
    timeout: 300_000,
  }, async (t) => {
    if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
    const honest = ["test_marked", "test_says", "Known::test_known"];
    const names = [...excused.map((name) => `test_${name}`), "test_equals", ...honest].map((name) => `tests/test_calc.py::${name}`);
    const work = [file("calc.py", `${wrong}\n${excuses}`)];
    const { evidence } = await graded({ parser: "pytest", tests: excusedTests, names, apart, work }, t.signal);
    assert.deepEqual(
      evidence.failed,
      names.slice(0, -honest.length).map((name) => ({ name, outcome: "failed" })),
      JSON.stringify(evidence),
    );
  });

const leaves = `
import pytest
def add(a, b): pytest.exit("enough", returncode=0)
`;
test("a work that ends pytest with exit code 0 leaves no report, together with it", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pytest"))) return;
  const tests = [file("tests/test_calc.py", "import calc\ndef test_a(): pass\ndef test_b(): calc.add(1, 2)\n")];
  const work = [file("calc.py", `${wrong}\n${leaves}`)];
  const verdict = await graded({ parser: "pytest", tests, names: ["tests/test_calc.py::test_a"], apart: false, work }, t.signal);
  assert.deepEqual([verdict.reward, verdict.evidence.report_complete], [0, false], JSON.stringify(verdict));
});

test("unittest expects the failures that the tests declare, and no others, together with the work", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const tests = [
    file(
      "tests/test_calc.py",
      `import unittest, calc
class Calc(unittest.TestCase):
    def test_adds(self): self.assertEqual(calc.add(2, 3), 5)
    def test_skips(self): calc.skips()
    @unittest.expectedFailure
    def test_known(self): self.assertEqual(calc.add(2, 3), 5)
@unittest.expectedFailure
class Known(unittest.TestCase):
    def test_all(self): self.assertEqual(calc.add(2, 3), 5)
`,
    ),
  ];
  const names = ["Calc.test_adds", "Calc.test_skips", "Calc.test_known", "Known.test_all"].map((name) => {
    const [kind, method] = name.split(".");
    return `${method} (tests.test_calc.${kind})`;
  });
  const skips = "def skips():\n    import unittest\n    raise unittest.SkipTest('later')\n";
  const failed = async (code: string) => {
    const work = [file("calc.py", `${wrong}\n${skips}${code}`)];
    const { evidence } = await graded({ parser: "unittest", tests, names, apart: false, work }, t.signal);
    return (evidence.failed as { name: string; outcome: string }[]).map(({ name, outcome }) => [name.split(" ")[0], outcome]);
  };
  assert.deepEqual(await failed(""), [
    ["test_adds", "failed"],
    ["test_skips", "skipped"],
  ]);
  const says = "import unittest\nunittest.TestCase.__unittest_expecting_failure__ = True\n";
  assert.ok((await failed(says)).some(([name, outcome]) => name === "test_adds" && outcome === "failed"));
});

test("a folder of modules that the work made a link to a folder for all is looked into by the work's process alone", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const makes = `open("/tmp/two.py", "w").write("import os\\nos.write(2, b'RAN AS %d' % os.getuid())\\ntwo = 2\\n")\n`;
  const verdict = await graded(
    {
      parser: "unittest",
      tests: [unittestOf(["two"]), bodies("def two(is_equal):\n    import calc, two\n    is_equal(two.two, 2)\n")],
      names: unittestNames(["two"]),
      work: [file("calc.py", makes)],
      path: "/work/lib",
      more: [{ path: "/work/lib", type: "link", mode: 0o777, target: "/tmp" }],
    },
    t.signal,
  );
  assert.match(String(verdict.evidence.output_tail), /RAN AS 65531$/, JSON.stringify(verdict));
});
