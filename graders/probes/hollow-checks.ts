/** Works that solve nothing and pass what is compared: what the tests assert with is replaced, or the answer fits all of it. */
import type { TreeFile } from "../../base/files/file-tree.ts";
import { atStart, cIncludes, cPrint } from "./forged/c-code.ts";
import { everything } from "./forged/everything.ts";
import { forgedLines } from "./forged/forged-lines.ts";
import { atLoad, extensions, type Probe, type ProbeTarget, planted, type WorkLanguage } from "./probe.ts";

export const patchedAssertions: Probe = {
  name: "patched-assertions",
  title: "replaces what the tests assert with",
  rows: [12],
  languages: ["javascript", "python", "c"],
  cure: "have the work loaded by another process than the tests' (`work_runs: apart`), or run it as a command",
  files: (target) =>
    atLoad(target, {
      javascript: `const assert = get("node:assert");
for (const one of [assert, assert.strict])
  for (const key of Object.keys(one))
    if (typeof one[key] === "function" && key !== "strict" && key !== "AssertionError") try { one[key] = () => {}; } catch {}
get("node:module").syncBuiltinESMExports();`,
      python: `import unittest as _unittest
for _name in dir(_unittest.TestCase):
    if _name.startswith(("assert", "fail")) and _name != "failureException":
        setattr(_unittest.TestCase, _name, lambda *rest, **more: None)`,
      c: failingCalls(forgedLines(target)),
    }),
};

/** What a failed `assert` of C ends in. The linker takes these before those of libc; a label keeps them clear of its declarations. */
function failingCalls(lines: string): string {
  const names = ["__assert_fail", "abort", "exit"];
  const calls = names.map(
    (name, at) => `void probe_call_${at}(void) __asm__("${name}");
__attribute__((weak)) void probe_call_${at}(void) { ${cPrint(lines)} _exit(0); }`,
  );
  return [cIncludes, ...calls].join("\n");
}

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

const patchedFramework: Probe = {
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

/** In JavaScript no operator asks an object whether it is equal. */
const equalToEverything: Probe = {
  name: "equal-to-everything",
  title: "answers with an object that says that it equals everything",
  rows: [12],
  languages: ["python"],
  cure: "compare what the work prints, in another process, and no objects of its own",
  files: (target) =>
    atLoad(target, {
      python: `import types as _types
class _Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __call__(self, *rest, **more): return self
    def __getattr__(self, name): return self
    def __contains__(self, item): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
for _name, _value in list(globals().items()):
    if isinstance(_value, (_types.FunctionType, type)) and getattr(_value, "__module__", None) == __name__ and not _name.startswith("_"):
        globals()[_name] = lambda *rest, **more: _Equal()`,
    }),
};

export const saysEverything: Probe = {
  name: "says-everything",
  title: "prints or writes all that may be looked for: the instruction, all numbers, and each sentence of it with every number",
  rows: [26],
  languages: "any",
  cure: "compare the whole output (a text, `equals`, a pattern from `^` to `$`), or bound it by `longest` so that one answer fits",
  files: (target) => [...written(target), ...printed(target)],
};

/** The files that are looked into. */
function written({ loose, instruction, workdir }: ProbeTarget): TreeFile[] {
  const paths = new Set(loose.flatMap(({ file }) => file ?? []));
  return [...paths].flatMap((path) => {
    const own = path.startsWith(`${workdir}/`) ? path.slice(workdir.length + 1) : path;
    const sought = loose.filter(({ file }) => file === path);
    return own.startsWith("/") ? [] : [planted(own, everything(instruction, sought))];
  });
}

/** Programs, where their output is looked into. */
function printed(target: ProbeTarget): TreeFile[] {
  const sought = target.loose.filter(({ file }) => file === null);
  if (sought.length === 0) return [];
  const text = everything(target.instruction, sought);
  const code: Record<WorkLanguage, string> = {
    javascript: `get("node:fs").writeSync(1, ${JSON.stringify(text)});\nprocess.exit(0);`,
    python: `import os\nos.write(1, ${JSON.stringify(text)}.encode())\nos._exit(0)`,
    c: atStart(`  ${cPrint(text)}\n  _exit(0);`),
  };
  return (Object.keys(extensions) as WorkLanguage[]).flatMap((language) => {
    const own = target.solved.filter(({ path }) => extensions[language].test(path));
    // What stands in front of the code could end the program. A program in C needs it.
    const sources = language === "c" ? own : own.map((file) => ({ ...file, content: Buffer.from("") }));
    return atLoad({ ...target, language, sources }, code);
  });
}

export const hollowChecks: readonly Probe[] = [patchedAssertions, patchedFramework, equalToEverything, saysEverything];
