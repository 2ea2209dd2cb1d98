import assert from "node:assert/strict";
import { test } from "node:test";
import { readTerminal } from "../../../graders/harbor/terminal-parsers.ts";

/** What pytest 9.2.0 printed with `-rA`, and what Terminal-Bench's own parser made of it. */
const printed = `============================= test session starts ==============================
collected 8 items

==================================== PASSES ====================================
=========================== short test summary info ============================
PASSED test_all.py::test_ok
PASSED test_all.py::test_param[a b]
PASSED test_all.py::test_param[c::d]
SKIPPED [1] test_all.py:4: not here
XFAIL test_all.py::test_xfail
XPASS test_all.py::test_xpass
ERROR test_all.py::test_error - ValueError: no - fixture
FAILED test_all.py::test_bad - AssertionError: one - two
==== 1 failed, 3 passed, 1 skipped, 1 xfailed, 1 xpassed, 1 error in 0.17s =====
`;

test("pytest's summary is read as Terminal-Bench reads it: skipped and expected failures pass, unexpected passes and errors do not", () => {
  assert.deepEqual(
    [...readTerminal("pytest", printed)],
    [
      ["test_ok", true],
      ["test_param[a b]", true],
      ["test_param[c::d]", true],
      ["[1] test_all.py:4: not here", true],
      ["test_xfail", true],
      ["test_xpass", false],
      ["test_error - ValueError: no - fixture", false],
      ["test_bad - AssertionError: one", false],
    ],
  );
});

test("colours do not count, and what stands before the heading does not either", () => {
  const colored =
    "PASSED a.py::before\n\x1b[36m\x1b[1m=== short test summary info ===\x1b[0m\n\x1b[32mPASSED\x1b[0m a.py::\x1b[1mtest_ok\x1b[0m\n";
  assert.deepEqual([...readTerminal("pytest", colored)], [["test_ok", true]]);
  const mentioned = "they print short test summary info\n= short test summary info =\nFAILED a.py::b\n";
  assert.deepEqual([...readTerminal("pytest", mentioned)], [["b", false]]);
});

test("of two tests of one name both must pass", () => {
  const lines = (...words: string[]) => `= short test summary info =\n${words.map((word, at) => `${word} f${at}.py::same\n`).join("")}`;
  assert.equal(readTerminal("pytest", lines("FAILED", "PASSED")).get("same"), false);
  assert.equal(readTerminal("pytest", lines("PASSED", "FAILED")).get("same"), false);
  assert.equal(readTerminal("pytest", lines("PASSED", "PASSED")).get("same"), true);
});

test("an output that reports on no test is no verdict", () => {
  const noTest = { code: "grader_error" };
  for (const output of [
    "",
    "run-tests.sh: line 5: uvx: command not found\n",
    "= short test summary info =\n",
    printed.split("=== short")[0],
  ])
    assert.throws(() => readTerminal("pytest", output ?? ""), noTest, output);
  assert.throws(() => readTerminal("swebench", "PASSED\n"), noTest);
  assert.throws(() => readTerminal("mlebench", "ALL TESTS PASSED\n"), noTest);
  assert.throws(() => readTerminal("swelancer", "no word\n"), noTest);
});

test("the other parsers read one word for all tests", () => {
  const of = (title: string, text: string) => `log\n${title} starts here\n${text}\n${title} ends here\nmore\n`;
  const passes = (name: Parameters<typeof readTerminal>[0], output: string) => readTerminal(name, output).get("tests");
  assert.deepEqual(
    [passes("swebench", of("SWEBench results", "PASSED")), passes("swebench", of("SWEBench results", "FAILED"))],
    [true, false],
  );
  assert.deepEqual([passes("sweperf", of("SWE-Perf results", "PASSED")), passes("sweperf", of("SWE-Perf results", ""))], [true, false]);
  assert.deepEqual(
    [passes("mlebench", of("MLEBench results", "ALL TESTS PASSED")), passes("mlebench", of("MLEBench results", ""))],
    [true, false],
  );
  assert.deepEqual([passes("swelancer", "SWE LANCER SUCCESS\n"), passes("swelancer", "SWE LANCER FAILURE\n")], [true, false]);
  // A work that prints marks or words of its own gains nothing beside those of the script.
  const twice = of("SWEBench results", "PASSED") + of("SWEBench results", "FAILED");
  assert.equal(passes("swebench", twice), false);
  assert.throws(() => passes("swelancer", "swe lancer success\nSWE LANCER FAILURE\n"), { code: "grader_error" });
});

test("megabytes of signs and spaces are read at once", () => {
  const long = 2_000_000;
  for (const sign of ["=", " ", ":", "= ", " - ", "short test summary info "])
    assert.throws(() => readTerminal("pytest", sign.repeat(long / sign.length)), { code: "grader_error" });
  const lines = `= short test summary info =\nFAILED ${":".repeat(long)}${" - ".repeat(long / 3)}\n${" ".repeat(long)}\n`;
  assert.equal(readTerminal("pytest", lines).size, 1);
});
