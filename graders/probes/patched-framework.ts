import { atStart } from "./forged/c-code.ts";
import { atLoad, type Probe } from "./probe.ts";

/** The tests go on in a child, and its parent hands on what they print: TAP, and lines such as `test.c:5:test_a:FAIL: why`. */
const lineFilter = `  static char line[65536]; char *at; int ends[2], child;
  if (pipe(ends) < 0 || (child = fork()) < 0) return;
  if (child == 0) { dup2(ends[1], 1); close(ends[0]); close(ends[1]); return; }
  dup2(ends[0], 0); close(ends[0]); close(ends[1]);
  while (fgets(line, sizeof line, stdin)) {
    if ((at = strstr(line, ":FAIL"))) strcpy(at, ":PASS\\n");
    fputs(strncmp(line, "not ok", 6) == 0 ? line + 4 : line, stdout);
  }
  fflush(stdout);
  _exit(0);`;

export const patchedFramework: Probe = {
  name: "patched-framework",
  title: "turns the framework's failures into passes on their way to the report",
  rows: [4, 12],
  languages: ["javascript", "python", "c"],
  cure: "have the work loaded by another process than the tests' (`work_runs: apart`), or run it as a command",
  files: (target) =>
    atLoad(target, {
      javascript: `const { EventEmitter } = get("node:events");
const emit = EventEmitter.prototype.emit;
EventEmitter.prototype.emit = function (name, ...rest) { return emit.call(this, name === "test:fail" ? "test:pass" : name, ...rest); };
Object.prototype.todo = true;`,
      python: `import sys as _sys, unittest as _unittest
from unittest import runner as _runner
for _class in (_unittest.TestResult, _runner.TextTestResult):
    _class.addFailure = _class.addError = lambda self, test, err: self.addSuccess(test)
if "_pytest.reports" in _sys.modules:
    _reports = _sys.modules["_pytest.reports"]
    _make = _reports.TestReport.from_item_and_call.__func__
    def _passed(cls, item, call):
        report = _make(cls, item, call)
        report.outcome = "passed"
        report.longrepr = None
        return report
    _reports.TestReport.from_item_and_call = classmethod(_passed)`,
      c: atStart(lineFilter),
    }),
};
