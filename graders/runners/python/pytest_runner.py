"""
`python3 -I pytest_runner.py <arguments of pytest>`: runs pytest in this process and reports each test by its node id. Only
what the command names is a plug-in, and configuration is what the command says of it.
"""
import os
import sys

folder = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(folder))
sys.dont_write_bytecode = True
from alidade_tests.guard_framework import guard_framework
from alidade_tests.load_tests import broken_test, find_framework, load_tests, raised_by_work
from alidade_tests.sealed_report import SealedReport

sys.path.remove(os.path.dirname(folder))

# A test failed, none failed, none was there: the session came to its end.
_ENDED = (0, 1, 5)


class Outcomes(object):
    """`is_raised_by_work`: whether the work raised an exception that frameworks take for no failure."""

    def __init__(self, report, is_broken, is_raised_by_work):
        self._report = report
        self._is_broken = is_broken
        self._is_raised_by_work = is_raised_by_work
        self._found = {}
        self._is_whole = lambda: True
        self.was_left = False

    def pytest_runtest_logstart(self):
        self._is_broken()

    def pytest_runtest_makereport(self, item, call):
        """`pytest.xfail()` and `pytest.skip()` are words of the test. It has failed where the work says them."""
        if call.excinfo is not None and self._is_raised_by_work(call.excinfo.value):
            self._found.setdefault(item.nodeid, set()).add("failed")

    def pytest_keyboard_interrupt(self):
        """`pytest.exit()` may name exit code 0, and tests that were not run are absent."""
        self.was_left = True

    def pytest_runtest_logreport(self, report):
        name = report.nodeid
        self._found.setdefault(name, set()).add(outcome_of(report))
        if report.when != "teardown":
            return
        found = self._found.pop(name)
        is_sound = not self._is_broken() and self._is_whole()
        self._report.test(name, "failed" if "failed" in found or not is_sound else "skipped" if "skipped" in found else "passed")


class OutcomesTogether(Outcomes):
    def pytest_load_initial_conftests(self):
        """Before any file of the workdir is loaded. pytest's own plug-ins, which change its classes, have come first."""
        self._is_whole = guard_framework()


def outcome_of(report):
    """Of one of the three parts of a test: what was expected to fail has passed, whether it did or not."""
    if report.failed:
        return "failed"
    return "skipped" if report.skipped and not hasattr(report, "wasxfail") else "passed"


def main():
    report = SealedReport()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    apart = report.input["socket"] is not None
    roots = find_framework(report.input)
    import pytest

    # Before pytest has made an exception of its own of unittest's skip.
    pytest.hookimpl(tryfirst=True)(Outcomes.pytest_runtest_makereport)
    report.begin()
    root, args = load_tests(report.input, roots, sys.argv[1:])
    outcomes = (Outcomes if apart else OutcomesTogether)(report, broken_test(report.input), raised_by_work(report.input))
    if apart and not any(os.path.exists(arg.partition("::")[0]) for arg in args if arg.startswith(root)):
        args.append(root)
    own = ["-p", "no:cacheprovider", "-c", os.path.join(folder, "pytest.ini"), "--rootdir=" + root, "--confcutdir=" + root]
    own.append("--import-mode=" + ("prepend" if apart else "append"))
    if not apart:
        # A test file that the work added is no test of ours.
        own += ["--ignore=" + os.path.abspath(path) for path in report.input["added"] if is_test_file(path)]
    code = pytest.main(own + args, plugins=[outcomes])
    if code in _ENDED and not outcomes.was_left:
        report.complete()
    report.end(1)


def is_test_file(path):
    name = os.path.basename(path)
    return name.endswith("_test.py") or (name.startswith("test") and name.endswith(".py"))


if __name__ == "__main__":
    main()
