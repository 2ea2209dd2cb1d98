"""`python3 -I work_host.py <socket>`: loads the work where the tests ask for it, and does there what they ask of it (apart.py)."""
import os
import sys

folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
import asyncio
import importlib
import socket
import threading
import types

from alidade_tests.peer import Peer
from alidade_tests.values import exception_base, known, known_name

sys.path.remove(folder)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


class TestFunction(object):
    """Stands for a function of the tests."""

    def __init__(self, peer, number, name):
        self._alidade_id = number
        self._peer = peer
        self._thread = threading.get_ident()
        self.__name__ = name

    def __call__(self, *args, **kwargs):
        # The socket is read by one thread.
        if threading.get_ident() != self._thread:
            raise RuntimeError("a thread of the work calls a function of the tests: let the task say work_runs: together")
        return self._peer.ask("call", self._alidade_id, list(args), kwargs)


class WorkSide(object):
    def __init__(self):
        self._loop = None
        self.ops = {
            "roots": lambda _, roots: sys.path.__setitem__(slice(0, 0), roots),
            "import": lambda _, name: importlib.import_module(name),
            "call": lambda target, args, kwargs: target(*args, **kwargs),
            "get": lambda target, name: _get(target, name),
            "set": lambda target, name, value: setattr(target, name, value),
            "delete": lambda target, name: delattr(target, name),
            "method": lambda target, name, args: getattr(type(target), name)(target, *args),
            "await": lambda target: self._await(target),
        }

    def export(self, peer, value):
        if isinstance(value, (TestFunction, BaseException)) and "_alidade_id" in vars(value):
            return {"yours": value._alidade_id}
        if isinstance(value, type):
            return self._class(peer, value)
        if isinstance(value, types.ModuleType):
            return {"module": peer.number(value), "name": value.__name__}
        if isinstance(value, types.CoroutineType):
            return {"coroutine": peer.number(value)}
        if isinstance(value, _FUNCTIONS):
            return {"function": peer.number(value), "name": str(getattr(value, "__name__", ""))}
        if isinstance(value, BaseException):
            kind = self._class(peer, type(value))
            return {"error": peer.number(value), "class": kind, "args": _arguments(peer, value), "text": str(value)}
        return {"instance": peer.number(value), "class": self._class(peer, type(value), known=False)}

    def restore(self, peer, tag, wire):
        if tag == "yours":
            return peer.own(wire[tag])
        if tag == "known":
            return known(wire[tag])
        if tag == "function":
            return TestFunction(peer, wire[tag], wire["name"])
        if tag == "error":
            error = make_error(peer._decode(wire["class"]), peer._decode(wire["args"]))
            error._alidade_id = wire[tag]
            return error
        raise ValueError("the tests sent a value of no known kind")

    def told(self, error):
        return error

    def kept(self):
        return None

    def lost(self, why):
        return RuntimeError(why)

    def _class(self, peer, kind, known=True):
        if known and known_name(kind) is not None:
            return {"known": known_name(kind)}
        methods = {name for one in kind.__mro__ if one is not object for name in vars(one) if name.startswith("__")}
        bases = [self._class(peer, base) for base in kind.__bases__]
        return {"class": peer.number(kind), "name": kind.__name__, "bases": bases, "methods": sorted(methods)}

    def _await(self, target):
        self._loop = self._loop or asyncio.new_event_loop()

        async def wait():
            return await target

        return self._loop.run_until_complete(wait())


def _get(target, name):
    found = getattr(target, name)
    return dict(found) if name == "__dict__" else found


def _arguments(peer, error):
    try:
        return peer.encode(list(error.args))
    except Exception:
        return peer.encode([str(error)])


def make_error(kind, args):
    try:
        return kind(*args)
    except Exception:
        return exception_base(kind).__new__(kind, *args)


def main():
    path = sys.argv[1]
    for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry and entry not in sys.path:
            sys.path.append(os.path.abspath(entry))
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0)
    listener.bind(path)
    os.umask(mask)
    listener.listen(1)
    # The first to come are the tests: nothing of the work has run yet that could come before them.
    connection, _ = listener.accept()
    listener.close()
    Peer(connection, WorkSide()).serve()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
