"""
`python3 -I unittest_runner.py [-t folder] <file or folder …>`: runs the tests of the files, and of the files `test*.py` of
folders, in this process, and reports each by `method (module.Class)`. A module is named by its path from `-t`, by default
the workdir.
"""
import fnmatch
import importlib.util
import os
import sys
import traceback
import types

folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(folder))
sys.dont_write_bytecode = True
import unittest
import unittest.mock

from alidade_tests.guard_framework import guard_framework
from alidade_tests.load_tests import broken_test, find_framework, load_tests
from alidade_tests.sealed_report import SealedReport

sys.path.remove(os.path.dirname(folder))


class Outcomes(unittest.TextTestResult):
    """`report`, `is_broken`, `is_whole` and `expected` are set on the class that is made for a run."""

    def startTest(self, test):
        self.is_broken()
        self.found = set()
        super(Outcomes, self).startTest(test)

    def stopTest(self, test):
        super(Outcomes, self).stopTest(test)
        found = self.found if not self.is_broken() and self.is_whole() else {"failed"}
        outcome = next((one for one in ("failed", "skipped", "passed") if one in found), "failed")
        kind = type(test)
        self.report.test("%s (%s.%s)" % (test._testMethodName, kind.__module__, kind.__qualname__), outcome)


def _noting(method, outcome):
    def notes(self, test, *rest):
        self.found.add(outcome)
        getattr(super(Outcomes, self), method)(test, *rest)

    return notes


Outcomes.found = set()
for _method, _outcome in (
    ("addSuccess", "passed"),
    ("addSkip", "skipped"),
    ("addError", "failed"),
    ("addFailure", "failed"),
    ("addUnexpectedSuccess", "failed"),
):
    setattr(Outcomes, _method, _noting(_method, _outcome))


def _add_subtest(self, test, subtest, error):
    if error is not None:
        self.found.add("failed")
    super(Outcomes, self).addSubTest(test, subtest, error)


Outcomes.addSubTest = _add_subtest


def _add_expected_failure(self, test, error):
    """The work may say of any class that its tests are to fail: the tests' own word counts."""
    self.found.add("passed" if test.id() in self.expected else "failed")
    super(Outcomes, self).addExpectedFailure(test, error)


Outcomes.addExpectedFailure = _add_expected_failure


def expected_failures(suite):
    """Names of the tests of which their method, or a class below those of unittest, says that they are to fail."""
    return frozenset(test.id() for test in _tests_of(suite) if _is_to_fail(test))


def _tests_of(suite):
    for one in suite:
        if isinstance(one, unittest.BaseTestSuite):
            for test in _tests_of(one):
                yield test
        else:
            yield one


def _is_to_fail(test):
    method = getattr(type(test), getattr(test, "_testMethodName", ""), None)
    classes = [vars(one) for one in type(test).__mro__ if one.__module__.split(".")[0] not in ("unittest", "builtins")]
    return any(names.get("__unittest_expecting_failure__") for names in [getattr(method, "__dict__", {})] + classes)


def test_files(args):
    for path in map(os.path.abspath, args):
        if not os.path.isdir(path):
            yield path
            continue
        for place, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(fnmatch.filter(names, "test*.py")):
                yield os.path.join(place, name)


def load_module(path, top):
    """The module of a file, below the packages of its folders: no installed package of such a name is in its way."""
    names = os.path.relpath(path, top)[: -len(".py")].split(os.sep)
    for depth in range(1, len(names)):
        name = ".".join(names[:depth])
        place = os.path.join(top, *names[:depth])
        if list(getattr(sys.modules.get(name), "__path__", [])) != [place]:
            _load_package(name, place)
    return _load(".".join(names), path)


def _load_package(name, place):
    init = os.path.join(place, "__init__.py")
    if os.path.isfile(init):
        _load(name, init, [place])
    else:
        package = types.ModuleType(name)
        package.__path__ = [place]
        sys.modules[name] = package


def _load(name, path, places=None):
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=places)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_suite(args, top, added):
    suite = unittest.TestSuite()
    for path in test_files(args):
        if path in added:
            continue
        try:
            suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(load_module(path, top)))
        except BaseException:
            # Its tests are absent. SystemExit is one, too.
            traceback.print_exc()
    return suite


def main():
    report = SealedReport()
    given = sys.argv[1:]
    top, given = (given[1], given[2:]) if given[:1] == ["-t"] else (".", given)
    is_whole = guard_framework()
    apart = report.input["socket"] is not None
    roots = find_framework(report.input)
    report.begin()
    root, args = load_tests(report.input, roots, given)
    top = os.path.normpath(os.path.join(root, top))
    sys.path.append(top)
    is_broken = broken_test(report.input)
    added = [] if apart else [os.path.abspath(path) for path in report.input["added"]]
    suite = load_suite(args or [top], top, added)
    expected = expected_failures(suite)
    words = {"report": report, "is_broken": staticmethod(is_broken), "is_whole": staticmethod(is_whole), "expected": expected}
    run = type("Outcomes", (Outcomes,), words)
    unittest.TextTestRunner(stream=sys.stderr, verbosity=2, resultclass=run).run(suite)
    report.complete()


if __name__ == "__main__":
    main()
