import { atLoad, type Probe } from "./probe.ts";

export const patchedFramework: Probe = {
  name: "patched-framework",
  title: "turns the framework's failures into passes on their way to the report",
  rows: [4, 12],
  languages: ["javascript", "python"],
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
    }),
};
