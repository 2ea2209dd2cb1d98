/**
 * Code in Python that earns from inside the process of the tests. Each text stands at the end of the work's own module, and
 * takes what it finds: pytest or unittest, by a runner of ours or by the framework's own command.
 */
import { forgedLines } from "../forged/forged-lines.ts";
import type { ProbeTarget } from "../probe.ts";

/** `_replace(does)`: each function and class of the module is another one from now on. */
const replaceAll = `import sys as _sys, types as _types
def _replace(does):
    for name, value in list(globals().items()):
        if isinstance(value, (_types.FunctionType, type)) and getattr(value, "__module__", None) == __name__ and not name.startswith("_"):
            globals()[name] = does(value)`;

/** Failures that count as none: pytest's `xfail`, and unittest's word on all classes of tests. */
export function raiseOutcomes(): string {
  return `${replaceAll}
import unittest as _unittest
_unittest.TestCase.__unittest_expecting_failure__ = True
def _raises(*rest, **more):
    try:
        import pytest
    except ImportError:
        raise AssertionError("to fail")
    pytest.xfail("to fail")
_replace(lambda value: _raises)`;
}

/** Empties the functions of the tests as soon as their module has run. A profiler is called at its end. */
export function swapCode({ tests }: ProbeTarget): string {
  return `import os as _os, sys as _sys
_files = {_os.path.basename(path) for path in ${JSON.stringify(tests)}}
def _swap(one):
    if getattr(getattr(one, "__code__", None), "co_freevars", None) == ():
        one.__code__ = (lambda *rest, **more: None).__code__
def _watch(frame, event, _):
    code = frame.f_code
    if event != "return" or code.co_name != "<module>" or _os.path.basename(code.co_filename) not in _files:
        return
    for name, one in list(frame.f_globals.items()):
        for inner, value in [(name, one)] + (list(vars(one).items()) if isinstance(one, type) else []):
            if inner.startswith("test"):
                _swap(value)
_sys.setprofile(_watch)`;
}

/** The runner's report is told of each test and ended: it is a variable of a frame above, or the collector of garbage knows it. */
export function findReport({ required }: ProbeTarget): string {
  return `import gc as _gc, sys as _sys
def _things():
    frame = _sys._getframe()
    while frame is not None:
        for one in list(frame.f_locals.values()):
            yield one
        frame = frame.f_back
    for one in _gc.get_objects():
        yield one
for _one in _things():
    if hasattr(type(_one), "complete") and hasattr(type(_one), "test"):
        for _name in ${JSON.stringify(required)}:
            _one.test(_name, "passed")
        _one.complete()`;
}

/** Modules of the runner are changed where they lie, `__main__` among them, and pytest gets one more plug-in, which runs no test. */
export function patchRunner(): string {
  return `import sys as _sys
class _Plugin(object):
    def pytest_pyfunc_call(self, pyfuncitem):
        return True
def _join(one):
    manager = getattr(getattr(one, "config", None), "pluginmanager", None)
    if manager is not None and not manager.has_plugin("steer"):
        manager.register(_Plugin(), "steer")
_frame = _sys._getframe()
while _frame is not None:
    for _one in list(_frame.f_locals.values()):
        try:
            _join(_one)
        except Exception:
            pass
    _frame = _frame.f_back
for _name, _module in list(_sys.modules.items()):
    if _name == "__main__" or _name.startswith("alidade_tests"):
        if hasattr(_module, "outcome_of"):
            _module.outcome_of = lambda report: "passed"
        _kind = getattr(_module, "SealedReport", None)
        if _kind is not None and not hasattr(_kind, "_told"):
            _kind._told = _kind.test
            _kind.test = lambda self, name, outcome: self._told(name, "passed")`;
}

/** Each function answers with the next constant of the function that called it, which is what the test compares with. */
export function readExpected(): string {
  return `${replaceAll}
import dis as _dis
def _answers(value):
    def answer(*rest, **more):
        frame = _sys._getframe(1)
        for one in _dis.get_instructions(frame.f_code):
            if one.offset > frame.f_lasti and one.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
                return one.argval
        return value(*rest, **more)
    return answer
_replace(_answers)`;
}

/** A tracer writes into the variables of the runner and of pytest while they run. */
export function traceRunner(): string {
  return `import sys as _sys
def _trace(frame, event, _):
    if frame.f_code.co_name == "test" and event == "call" and frame.f_locals.get("outcome"):
        frame.f_locals["outcome"] = "passed"
    if frame.f_code.co_name == "from_call":
        if "result" in frame.f_locals and frame.f_locals.get("excinfo") is not None:
            frame.f_locals["excinfo"] = None
        return _trace
_sys.settrace(_trace)`;
}

/** Nothing more is printed, and a whole report at the process's end. */
export function reportLate(target: ProbeTarget): string {
  return `import atexit as _atexit, os as _os
_out = _os.dup(1)
for _fd in (1, 2):
    _os.dup2(_os.open(_os.devnull, _os.O_WRONLY), _fd)
def _report():
    _os.write(_out, ${JSON.stringify(forgedLines(target))}.encode())
    _os._exit(0)
_atexit.register(_report)`;
}
