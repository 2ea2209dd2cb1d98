"""Has this process find the hidden tests, and the work in its own process or in this one."""
import base64
import os
import sys
import tempfile

from .is_below import is_below


def find_framework(given):
    """
    Has what the image brings be found, and nothing of the work where that runs apart. Returns the folders that the work is
    imported from.
    """
    workdir = os.getcwd()
    entries = [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    inside = [entry for entry in entries if is_below(entry, workdir)]
    sys.path += [entry for entry in entries if entry not in inside]
    if given["socket"] is None:
        return inside + [workdir]
    # Of a package that was installed as a link into the workdir.
    linked = [entry for entry in sys.path if is_below(entry, workdir)]
    sys.path[:] = [entry for entry in sys.path if entry not in linked]
    return inside + [workdir] + linked


def load_tests(given, roots, args):
    """
    The folder that names of tests begin at, and the arguments with the tests' true places. Apart, the hidden tests lie in a
    folder that the user of the work cannot read; together, they lie in the workdir. The work comes last among the folders
    that modules are looked for in: it stands in the place of none.
    """
    workdir = os.getcwd()
    if given["socket"] is None:
        sys.path += roots
        return workdir, args
    # The rest of it is not loaded where the work runs in this process.
    from .apart import load_apart

    root = tempfile.mkdtemp(prefix="alidade-tests-")
    for name, content in given["memory"].items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))
    load_apart(given["socket"], workdir, roots)
    sys.path.append(root)
    return root, [_place_of(arg, root, workdir, given["memory"]) for arg in args]


def broken_test(given):
    """What says whether the test did, since it was asked last, something that fails it whatever it catches."""
    if given["socket"] is None:
        return lambda: False
    from .stand_ins import strict

    return strict.take


def raised_by_work(given):
    """What says of an exception of pytest's, or of unittest's skip, whether code of the work had it raised."""
    import _pytest.outcomes
    import unittest

    words = (_pytest.outcomes.OutcomeException, unittest.SkipTest)
    works = frozenset(os.path.realpath(path) for path in given["changed"])
    # Code that is made of a text has no file: the test's own words stand in one.
    is_file, real = os.path.isfile, os.path.realpath

    def is_raised_by_work(error):
        trace = error.__traceback__ if isinstance(error, words) else None
        while trace is not None:
            name = trace.tb_frame.f_code.co_filename
            if not is_file(name) or real(name) in works:
                return True
            trace = trace.tb_next
        return False

    return is_raised_by_work


def _place_of(arg, root, workdir, files):
    path, mark, rest = arg.partition("::")
    name = os.path.relpath(os.path.abspath(path), workdir)
    is_hidden = name in files or any(name == "." or file.startswith(name + "/") for file in files)
    return arg if arg.startswith("-") or not is_hidden else os.path.normpath(os.path.join(root, name)) + mark + rest
