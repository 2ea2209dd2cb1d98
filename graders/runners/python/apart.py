"""
The work in a process of its own, from the tests' side. What a test imports of the workdir is a module that stands for the
one over there: data is copied, and functions and methods are called there. No code of the workdir runs in this process,
and no program is started by it: such a program would be of the user of the tests.
"""
import functools
import importlib.machinery
import os
import socket
import sys
import time
import types

from .is_below import is_below
from .peer import Peer
from .stand_ins import (
    WorkFunction,
    WorkModule,
    is_verdict,
    make_class,
    make_instance,
    number_of,
    strict,
)
from .values import exception_base, known, known_name

# The process of the work is being started.
_START_SECONDS = 60
_PAUSE_SECONDS = 0.025
_PLAIN = {type(None), bool, int, float, str, bytes}
_CALLED = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, functools.partial)


class TestSide(object):
    def __init__(self):
        self._classes = {}
        self._kept = None
        self.ops = {"call": lambda target, args, kwargs: target(*args, **kwargs)}

    def export(self, peer, value):
        number = number_of(value)
        if number is not None:
            return {"yours": number}
        if isinstance(value, BaseException):
            kind = {"known": known_name(exception_base(type(value)))}
            args = peer.encode([one if type(one) in _PLAIN else str(one) for one in value.args])
            return {"error": peer.number(value), "class": kind, "args": args, "text": str(value)}
        if isinstance(value, _CALLED):
            return {"function": peer.number(value), "name": str(getattr(value, "__name__", ""))}
        what = "the class %s" % value.__name__ if isinstance(value, type) else "an instance of %s" % type(value).__name__
        raise strict.fail("%s of the tests cannot be handed to the work" % what)

    def restore(self, peer, tag, wire):
        held = wire[tag]
        if tag == "yours":
            return peer.own(held)
        if tag == "known":
            return _told_class(held)
        if type(held) is not int:
            raise ValueError("the work sent no number where one belongs")
        if tag == "function":
            return WorkFunction(peer, held, str(wire["name"]))
        if tag == "module":
            return WorkModule(str(wire["name"]), peer, held)
        if tag == "coroutine":
            return _wait(peer, held)
        if tag == "class":
            return self._class(peer, wire)
        if tag == "instance":
            return make_instance(self._class(peer, wire["class"]), held)
        if tag == "error":
            return self._error(peer, wire)
        raise ValueError("the work sent a value of no known kind")

    def told(self, error):
        """With a failed assertion the work could learn what a test compares with, swallow it, and answer again."""
        if not is_verdict(error):
            return error
        self._kept = self._kept or error
        return RuntimeError("a function of the tests failed")

    def kept(self):
        kept, self._kept = self._kept, None
        return kept

    def lost(self, why):
        return strict.fail(why)

    def _class(self, peer, wire):
        number = wire["class"]
        if type(number) is not int:
            raise ValueError("the work sent no number where one belongs")
        if number not in self._classes:
            bases = [self._class_of(peer, one) for one in wire["bases"]]
            self._classes[number] = make_class(peer, number, str(wire["name"]), bases, set(wire["methods"]))
        return self._classes[number]

    def _class_of(self, peer, wire):
        """Of an exception, or below a class: those of Python are what they are."""
        return known(wire["known"]) if "known" in wire else self._class(peer, wire)

    def _error(self, peer, wire):
        kind = self._class_of(peer, wire["class"])
        args = peer._decode(wire["args"])
        if not isinstance(kind, type) or not issubclass(kind, BaseException) or type(args) is not list:
            raise ValueError("the work sent an exception of no known kind")
        error = kind.__new__(kind, *args)
        if type(kind) is type:
            try:
                error.__init__(*args)
            except Exception:
                error.args = tuple(args)
        BaseException.__setattr__(error, "_alidade_id", wire["error"])
        BaseException.__setattr__(error, "_alidade_text", str(wire["text"]))
        return error


def _told_class(name):
    """With one of these in the place of its own error, a work would be caught whatever failed: `except calc.Error`."""
    found = known(name)
    if isinstance(found, type) and issubclass(AssertionError, found) and found is not object:
        raise strict.fail("the work gives the test %s, which would catch a failed assertion" % name)
    return found


async def _wait(peer, number):
    return peer.ask("await", number)


class WorkFinder(object):
    """Finds what others find outside of the workdir, and else the work."""

    def __init__(self, others, peer, workdir, roots):
        self._others = others
        self._peer = peer
        self._workdir = workdir
        self._roots = roots

    def find_spec(self, name, path=None, target=None):
        for other in self._others:
            spec = other.find_spec(name, path, target) if hasattr(other, "find_spec") else None
            if spec is not None:
                return self._stand_in(name) if self._is_work(spec) else spec
        place = name.replace(".", "/")
        return self._stand_in(name) if any(_is_module(os.path.join(root, place)) for root in self._roots) else None

    def _stand_in(self, name):
        # With no folder of its own: what is below it is looked for over there.
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def invalidate_caches(self):
        for other in self._others:
            getattr(other, "invalidate_caches", lambda: None)()

    def find_distributions(self, *context):
        """What `importlib.metadata` asks for the version of a package."""
        for other in self._others:
            for found in getattr(other, "find_distributions", lambda *_: ())(*context):
                yield found

    def create_module(self, spec):
        found = self._peer.ask("import", None, spec.name)
        if not isinstance(found, WorkModule):
            raise ImportError("the work has put something else in the place of its module %s" % spec.name)
        return found

    def exec_module(self, module):
        pass

    def _is_work(self, spec):
        return any(is_below(place, self._workdir) for place in [spec.origin] + list(spec.submodule_search_locations or []))


def _is_module(place):
    if os.path.isdir(place) or os.path.isfile(place + ".py"):
        return True
    return any(os.path.isfile(place + ending) for ending in importlib.machinery.EXTENSION_SUFFIXES)


_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")


def _refuse_work_here(workdir):
    def hook(event, args):
        if event in _STARTS:
            raise strict.fail("the test starts a program (%s), which would be of the user of the tests" % event)
        place = None
        if event == "exec":
            place = getattr(args[0], "co_filename", None)
        elif event == "import":
            place = args[1]
        elif event == "ctypes.dlopen":
            place = args[0]
        if place is not None and is_below(place, workdir):
            raise strict.fail("%s is a file of the workdir, which the test runs itself" % place)

    sys.addaudithook(hook)


def load_apart(path, workdir, roots):
    """`roots`: the folders that the work is imported from."""
    peer = Peer(_connect(path), TestSide())
    peer.ask("roots", None, roots)
    sys.meta_path[:] = [WorkFinder(list(sys.meta_path), peer, workdir, roots)]
    _refuse_work_here(workdir)


def _connect(path):
    until = time.monotonic() + _START_SECONDS
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_SECONDS)
