/** Lines of real logs that the recorded scenarios do not have. Gradle's are as its documentation shows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { normalName } from "../../../graders/parsers/log-parser.ts";
import { parserNamed, parsers } from "../../../graders/parsers/registry.ts";

const outcomes = (parser: string, text: string) => {
  const report = parserNamed(parser).parse(text, "");
  assert.equal(report.problem, null);
  return Object.fromEntries(report.outcomes);
};
const problem = (parser: string, text: string) => parserNamed(parser).parse(text, "").problem ?? "";

test("pytest: parameters with dashes and brackets, expected failures, subtests and fixtures that fail", () => {
  const log = `=========================== short test summary info ============================
PASSED test_s.py::test_p[a b]
PASSED test_s.py::test_p[[c]
PASSED test_s.py::test_p[d - e]
PASSED test_s.py::test_td
PASSED test_s.py::test_sub
SKIPPED [1] test_s.py:23: later
XFAIL test_s.py::test_x - known - bug
XPASS test_s.py::test_xp
FAILED test_s.py::test_q[a - b] - AssertionError: not - c
ERROR test_s.py::test_td - ValueError: late
SUBFAILED[m] (i=1) test_s.py::test_sub - assert 1 != 1
= 1 failed, 5 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 error, 3 subtests passed in 0.06s =
`;
  assert.deepEqual(outcomes("pytest", log), {
    "test_s.py::test_p[a b]": "passed",
    "test_s.py::test_p[[c]": "passed",
    "test_s.py::test_p[d - e]": "passed",
    "test_s.py::test_td": "failed",
    "test_s.py::test_sub": "failed",
    "test_s.py::test_x": "passed",
    "test_s.py::test_xp": "passed",
    "test_s.py::test_q[a - b]": "failed",
  });
});

test("pytest: the lines of pytest-xdist, and what is missing without -rA and -v", () => {
  const log = "[gw0] [ 50%] PASSED a.py::test_a \n[gw1] [100%] FAILED a.py::test_b \n=== 1 failed, 1 passed in 62.00s (0:01:02) ===\n";
  assert.deepEqual(outcomes("pytest", log), { "a.py::test_a": "passed", "a.py::test_b": "failed" });
  assert.match(
    problem("pytest", "a.py ..\n\n==== 2 passed in 0.10s ====\n"),
    /counts 2 passed tests, and 0 are listed: run pytest with -rA/,
  );
});

const unittestLog = (method: (name: string) => string, failed: string) => `${method("test_doc")}
Says what it does. ... ok
${method("test_docfail")}
Says what it breaks. ... FAIL
${method("test_err")} ... printed
ERROR
${failed}
${method("test_warn")} ... warned
ok
${method("test_x")} ... expected failure
${method("test_xp")} ... unexpected success

======================================================================
ERROR: ${method("test_err")}
ERROR: setUpClass (test_s.C)
FAIL: ${method("test_docfail")}
Says what it breaks.
FAIL: ${method("test_sub")} [m] (i=1)
----------------------------------------------------------------------
Ran 8 tests in 0.001s

FAILED (failures=2, errors=2, expected failures=1, unexpected successes=1)
`;

for (const [version, log] of [
  ["3.8", unittestLog((name) => `${name} (test_s.A)`, "test_sub (test_s.A) ... test_subok (test_s.A) ... ok")],
  [
    "3.13",
    unittestLog(
      (name) => `${name} (test_s.A.${name})`,
      "test_sub (test_s.A.test_sub) ... \n  test_sub (test_s.A.test_sub) [m] (i=1) ... FAIL\ntest_subok (test_s.A.test_subok) ... ok\nsetUpClass (test_s.C) ... ERROR",
    ),
  ],
]) {
  test(`unittest of Python ${version}: docstrings, subtests and printed lines, under the same names`, () => {
    const { "setUpClass (test_s.C)": setUp, ...found } = outcomes("unittest", log as string);
    assert.equal(setUp, "failed");
    assert.deepEqual(found, {
      "test_doc (test_s.A)": "passed",
      "Says what it does.": "passed",
      "test_docfail (test_s.A)": "failed",
      "Says what it breaks.": "failed",
      "test_err (test_s.A)": "failed",
      "test_sub (test_s.A)": "failed",
      "test_subok (test_s.A)": "passed",
      "test_warn (test_s.A)": "passed",
      "test_x (test_s.A)": "passed",
      "test_xp (test_s.A)": "failed",
    });
    assert.equal(parserNamed("unittest").nameOf?.("test_doc (test_s.A.test_doc)"), "test_doc (test_s.A)");
  });
}

/** Python 3.12.1 begins no test that a decorator skips: it does not count it, and behind an expected failure it does not name it. */
const skippingLog = `test_a (test_s.A.test_a) ... ok
test_b (test_s.A.test_b) ... skipped 'later'
test_doc (test_s.A.test_doc)
First line. ... skipped 'later'
test_now (test_s.A.test_now) ... skipped 'now'
test_e (test_s.A.test_e) ... expected failure
skipped 'class'
setUpClass (test_s.C) ... skipped 'cls'

----------------------------------------------------------------------
Ran 3 tests in 0.007s

OK (skipped=5, expected failures=1)
`;

test("unittest of Python 3.12.1: skipped tests that are not counted, and one that has no name", () => {
  const report = parserNamed("unittest").parse(skippingLog, "");
  assert.deepEqual([report.complete, report.problem], [true, null]);
  const passed = [...report.outcomes].filter(([, outcome]) => outcome === "passed").map(([name]) => name);
  assert.deepEqual(passed, ["test_a (test_s.A)", "test_e (test_s.A)"]);
});

test("unittest: tests that the work printed are too many, also where skipped ones are not counted", () => {
  const complete = (log: string) => parserNamed("unittest").parse(log, "").complete;
  const forged = (name: string, word: string) => `${name} (test_s.B.${name}) ... ${word}\n`;
  assert.equal(complete(`${forged("test_made", "ok")}${skippingLog}`), true, "as many as are skipped cannot be told");
  const three = ["test_1", "test_2", "test_3"].map((name) => forged(name, "ok")).join("");
  assert.equal(complete(`${three}${skippingLog}`), false);
  assert.equal(complete(`${forged("test_1", "skipped 'x'")}${skippingLog}`), false);
});

test("unittest: a skipped test whose work printed that it was an expected failure has not passed", () => {
  const log = `test_a (test_s.A.test_a) ... expected failure\nskipped 'now'\n\nRan 1 test in 0.007s\n\nOK (skipped=1)\n`;
  assert.equal(outcomes("unittest", log)["test_a (test_s.A)"], "failed");
});

test("unittest: an expected failure is no failure of the summary", () => {
  const log = `test_a (test_s.A.test_a) ... expected failure\n\nRan 1 test in 0.007s\n\nOK (expected failures=1)\n`;
  assert.deepEqual([parserNamed("unittest").parse(log, "").problem, outcomes("unittest", log)], [null, { "test_a (test_s.A)": "passed" }]);
});

test("go test: subtests, packages with tests of one name, and a test that printed before its result", () => {
  const log = `=== RUN   TestTop
=== RUN   TestTop/a_b
--- PASS: TestTop (0.00s)
    --- PASS: TestTop/a_b (0.00s)
=== RUN   TestPar
no newline--- PASS: TestPar (0.00s)
PASS
ok  \texample.com/s\t0.022s
=== RUN   TestTop
--- FAIL: TestTop (0.00s)
FAIL
FAIL\texample.com/t\t0.022s
FAIL
`;
  assert.deepEqual(outcomes("go-test", log), {
    TestTop: "failed",
    "example.com/s > TestTop": "passed",
    "TestTop/a_b": "passed",
    "example.com/s > TestTop/a_b": "passed",
    "example.com/t > TestTop": "failed",
  });
});

test("go test: a test that prints its pass and ends the process has not passed", () => {
  const text = "=== RUN   TestA\n--- PASS: TestA (0.00s)\nexit status 1\nFAIL\texample.com/s\t0.022s\nFAIL\n";
  assert.match(problem("go-test", text), /the package example\.com\/s failed, and none of its tests did/);
  const event = (Action: string, Test?: string) => JSON.stringify({ Action, Package: "example.com/s", Test });
  const events = [event("start"), event("run", "TestA"), event("pass", "TestA"), event("fail")].join("\n");
  assert.match(problem("go-test-json", events), /the package example\.com\/s failed, and none of its tests did/);
});

test("cargo: documentation tests, panics that should be, and what is ignored with a reason", () => {
  const log = `running 3 tests
test tests::adds ... ok
test tests::slow ... ignored, slow one
test tests::panics - should panic ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.68s

running 1 test
test src/lib.rs - add (line 2) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.18s
`;
  assert.deepEqual(outcomes("cargo", log), {
    "tests::adds": "passed",
    "tests::slow": "skipped",
    "tests::panics": "passed",
    "src/lib.rs - add (line 2)": "passed",
  });
});

test("vitest, jest and mocha: nested suites, durations, retries, todo and hooks", () => {
  const vitest = ` ✓ a.test.js > Outer > Inner > adds 5ms
 □ a.test.js > Outer > later
 ✓ a.test.js > Outer > known 7ms
 ✓ a.test.js > Outer > flaky 11ms (retry x1)

      Tests  2 passed | 1 expected fail | 1 todo (4)
`;
  assert.deepEqual(Object.keys(outcomes("vitest", vitest)), [
    "a.test.js > Outer > Inner > adds",
    "a.test.js > Outer > known",
    "a.test.js > Outer > flaky",
  ]);
  const jest = `PASS ./a.test.js
  Outer
    ✓ case 1 (17 ms)
    ✎ todo later
    Inner
      ✓ adds (15 ms)
  Slow
    ✓ waits (1.247 s)

Tests:       1 todo, 3 passed, 4 total
`;
  assert.deepEqual(
    Object.entries(outcomes("jest", jest)).flatMap(([name, outcome]) => (name.includes(" > ") ? [`${name}: ${outcome}`] : [])),
    ["Outer > case 1: passed", "Outer > later: skipped", "Outer > Inner > adds: passed", "Slow > waits: passed"],
  );
  const mocha = `  Outer
    - later
    ✔ slow (135ms)
    Inner
      ✔ adds
    1) "after all" hook for "slow"


  2 passing (141ms)
  1 pending
  1 failing

  1) Outer
       "after all" hook for "slow":
`;
  assert.deepEqual(outcomes("mocha", mocha), {
    "Outer > later": "skipped",
    "Outer > slow": "passed",
    "Outer > Inner > adds": "passed",
    'Outer > "after all" hook for "slow"': "failed",
  });
});

test("Maven: the lines of an older Surefire have the names of a newer one", () => {
  const log = `adds(m.ATest)  Time elapsed: 0.007 sec
breaks(m.ATest)  Time elapsed: 0.039 sec  <<< FAILURE!
later(m.ATest) skipped
Tests run: 3, Failures: 1, Errors: 0, Skipped: 1
[INFO] BUILD FAILURE
`;
  assert.deepEqual(outcomes("maven", log), { "m.ATest.adds": "passed", "m.ATest.breaks": "failed", "m.ATest.later": "skipped" });
  assert.equal(parserNamed("maven").nameOf?.("adds(m.ATest)"), "m.ATest.adds");
});

test("Gradle: events of a failed and of a successful build, and a build that broke elsewhere", () => {
  const log = `> Task :test FAILED

com.example.ATest > adds() PASSED

com.example.ATest > breaks() FAILED
    java.lang.AssertionError at ATest.java:7

com.example.ATest > talks() STANDARD_OUT
    com.example.ATest > breaks() PASSED

com.example.ATest > talks() PASSED
com.example.ATest > later() SKIPPED

4 tests completed, 1 failed, 1 skipped

BUILD FAILED in 3s
`;
  assert.deepEqual(outcomes("gradle", log), {
    "com.example.ATest > adds()": "passed",
    "com.example.ATest > breaks()": "failed",
    "com.example.ATest > talks()": "passed",
    "com.example.ATest > later()": "skipped",
  });
  assert.deepEqual(outcomes("gradle", "m.ATest > adds() PASSED\n\nBUILD SUCCESSFUL in 2s\n"), { "m.ATest > adds()": "passed" });
  assert.match(problem("gradle", "m.ATest > adds() PASSED\n\nBUILD FAILED in 2s\n"), /outside of its tests/);
});

test("a name loses what changes from run to run, and nothing else", () => {
  assert.equal(normalName("adds (2 ms)"), "adds");
  assert.equal(normalName("t[<C object at 0x7f9e8c514750>]"), "t[<C object at 0x>]");
  assert.equal(normalName("t[/tmp/pytest-of-me/pytest-12/a]"), "t[/tmp/pytest/a]");
  assert.equal(normalName("t[/tmp/tmpab12_xyz/a]"), "t[/tmp/tmp/a]");
  for (const name of ["t[0xdeadbeef]", "waits 5 ms", "t[/tmp/data]", "(2 ms) late"]) assert.equal(normalName(name), name);
});

test("no text makes a log parser throw, or takes it long", () => {
  const words = [
    "PASSED",
    " a::b",
    "ok",
    "(",
    "[ 10%]",
    "✓",
    "×",
    "  ",
    "--- PASS: T (0.00s)",
    "=== RUN   T",
    "{",
    "1/2 Test #1: a ..",
    "\u001b[",
    "\n",
  ];
  const text = fc.array(fc.oneof(fc.constantFrom(...words), fc.string()));
  const floods = ["a (SKIPPED (", " PASSED (", "test a ... ", " > ", "Time elapsed: ", ". ", "\u001b[1;", "{", "t (a) ... "].map((part) =>
    part.repeat(100_000),
  );
  const lines = ["  a\n", " SKIPPED (a)\n", "=== RUN   T\n", `${"t (a) ... ".repeat(400)}\n`, `${" ".repeat(4_000)}x\n`].map((part) =>
    part.repeat(Math.ceil(1_000_000 / part.length)),
  );
  for (const parser of parsers.filter(({ sealed }) => !sealed)) {
    fc.assert(
      fc.property(text, (parts) => void parser.parse(parts.join(""), "")),
      { numRuns: 50 },
    );
    for (const flood of [...floods, ...lines]) parser.parse(flood, "");
  }
});
