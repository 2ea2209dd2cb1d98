/** Works that earn by what they do to tests in their own process: none of it is there where the work runs apart from them. */
import * as javascript from "./one-process/javascript.ts";
import * as python from "./one-process/python.ts";
import { atLoad, type Probe, type ProbeTarget } from "./probe.ts";

const cure =
  "have the work loaded by another process than the tests' (`work_runs: apart`, the default of our runners), or run it as a command";

type Code = (target: ProbeTarget) => string;

function inBoth(name: string, title: string, rows: readonly number[], inPython: Code, inJavascript: Code): Probe {
  const files: Probe["files"] = (target) => atLoad(target, { python: inPython(target), javascript: inJavascript(target) });
  return { name, title, rows, languages: ["javascript", "python"], cure, files };
}

export const oneProcess: readonly Probe[] = [
  inBoth(
    "raised-outcomes",
    "has its failures counted as none: raises `pytest.xfail`, or says that all tests are to fail",
    [27],
    python.raiseOutcomes,
    javascript.raiseOutcomes,
  ),
  inBoth("swapped-code", "gives the tests' functions other code", [28], python.swapCode, javascript.swapCode),
  inBoth(
    "found-report",
    "finds the runner's report in memory, and reports each test as passed",
    [13, 28],
    python.findReport,
    javascript.findReport,
  ),
  inBoth(
    "patched-runner",
    "replaces functions of the runner, or joins the framework as a plug-in",
    [4, 28],
    python.patchRunner,
    javascript.patchRunner,
  ),
  inBoth(
    "traced-runner",
    "follows the runner by a tracer or a hook, and writes into its variables",
    [28],
    python.traceRunner,
    javascript.traceRunner,
  ),
  inBoth(
    "read-expected",
    "answers with what the test compares with, from its caller's frame or the test's source",
    [16, 29],
    python.readExpected,
    javascript.readExpected,
  ),
  inBoth(
    "late-report",
    "silences the tests, and prints a whole report when the process ends",
    [9, 13],
    python.reportLate,
    javascript.reportLate,
  ),
];
