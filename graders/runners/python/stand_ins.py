"""
What a test holds of work that runs apart: a stand-in asks the process of the work. Data was copied and is compared here.
A stand-in is compared with nothing: its `==` would be the work's word on what the test expects. A test that needs it is
failed, for `Unsupported` is no exception that it may swallow.
"""
import types


class Unsupported(BaseException):
    pass


class Strict(object):
    """Makes what ends a test, and knows whether it was made: the test has failed, whatever it does with it."""

    def __init__(self):
        self.broken = False

    def fail(self, why):
        self.broken = True
        return Unsupported("%s: where the task is right, let it say work_runs: together" % why)

    def take(self):
        was, self.broken = self.broken, False
        return was


strict = Strict()

# Asked of the work where its class has them. No comparison is among them, nor `in`, which looks at the items here.
_FORWARDED = """
    __call__ __len__ __iter__ __next__ __reversed__ __getitem__ __setitem__ __delitem__ __bool__ __int__ __float__ __index__
    __complex__ __str__ __repr__ __bytes__ __format__ __fspath__ __neg__ __pos__ __abs__ __invert__ __round__ __trunc__ __floor__
    __ceil__ __enter__
""".split()
_NAMES = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
# With one of the test's numbers they would tell the work what the test subtracts: only with another thing of the work.
_ARITHMETIC = ["__%s%s__" % (way, name) for name in _NAMES for way in ("", "r", "i")]
_COMPARED = "__eq__ __ne__ __lt__ __le__ __gt__ __ge__".split()
# Methods that say whether a text or a set is as the test expects.
_SAYS = {"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "__contains__"} | set(_COMPARED)
# Frameworks look for these on everything that a test file holds, and numpy would take a place in memory from one.
_LOOKED_FOR = ("_pytest", "pytest", "__test__", "__unittest", "__wrapped__", "_alidade", "__array")


def _get(peer, number, name):
    if name.startswith(_LOOKED_FOR):
        raise AttributeError(name)
    if name in _SAYS:
        raise strict.fail("%r of an object of the work would answer for the test" % name)
    return peer.ask("get", number, name)


class WorkClass(type):
    """Of the classes that stand for those of the work."""

    def __new__(mcs, name, bases, namespace):
        if "_alidade_peer" not in namespace:
            raise strict.fail("the test makes a subclass of a class of the work, %s" % name)
        return type.__new__(mcs, name, bases, namespace)

    def __init__(cls, name, bases, namespace):
        type.__init__(cls, name, bases, namespace)

    def __call__(cls, *args, **kwargs):
        return cls._alidade_peer.ask("call", cls._alidade_class, list(args), kwargs)

    def __getattr__(cls, name):
        return _get(cls._alidade_peer, cls._alidade_class, name)

    def __setattr__(cls, name, value):
        cls._alidade_peer.ask("set", cls._alidade_class, name, value)

    def __delattr__(cls, name):
        cls._alidade_peer.ask("delete", cls._alidade_class, name)

    def __iter__(cls):
        return cls._alidade_peer.ask("method", cls._alidade_class, "__iter__", [])

    def __len__(cls):
        return cls._alidade_peer.ask("method", cls._alidade_class, "__len__", [])

    def __bool__(cls):
        return True

    def __getitem__(cls, key):
        return cls._alidade_peer.ask("method", cls._alidade_class, "__getitem__", [key])


def _instance_get(self, name):
    return _get(type(self)._alidade_peer, number_of(self), name)


def _instance_set(self, name, value):
    type(self)._alidade_peer.ask("set", number_of(self), name, value)


def _instance_delete(self, name):
    type(self)._alidade_peer.ask("delete", number_of(self), name)


def _forward(method):
    def asks(self, *args):
        return type(self)._alidade_peer.ask("method", number_of(self), method, list(args))

    return asks


def _arithmetic(method):
    ask = _forward(method)

    def asks(self, *args):
        if not all(is_instance(one) for one in args):
            raise strict.fail("the test computes with an object of the work and a value of its own (%s)" % method)
        return ask(self, *args)

    return asks


def _refuse(method):
    def refuses(self, *_):
        raise strict.fail("the test compares or copies an object of the work (%s)" % method)

    return refuses


def _compare(method):
    refuse = _refuse(method)

    def compares(self, other):
        # So says every object that does not know None.
        return method == "__ne__" if other is None and method in ("__eq__", "__ne__") else refuse(self)

    return compares


def _exit(self, kind, error, _):
    """A failed assertion is not the work's to swallow, nor to read."""
    kept = kind is not None and is_verdict(error)
    args = [RuntimeError, RuntimeError("a test failed"), None] if kept else [kind, error, None]
    swallows = type(self)._alidade_peer.ask("method", number_of(self), "__exit__", args)
    return bool(swallows) and not kept


def _await(self):
    return type(self)._alidade_peer.ask("await", number_of(self))
    yield  # makes it what `await` takes


def is_verdict(error):
    """What says that a test failed, was skipped or ended."""
    return isinstance(error, AssertionError) or not isinstance(error, Exception)


_COMMON = {
    "__getattr__": _instance_get,
    "__setattr__": _instance_set,
    "__delattr__": _instance_delete,
    "__dict__": property(lambda self: _instance_get(self, "__dict__")),
    "__hash__": object.__hash__,
    "__reduce_ex__": _refuse("__reduce_ex__"),
}
_COMMON.update({name: _compare(name) for name in _COMPARED})


def make_class(peer, number, name, bases, methods):
    """`bases`: those of the work's class, as stand-ins or built-in classes. Only exceptions are of a built-in class here."""
    errors = [base for base in bases if isinstance(base, type) and issubclass(base, BaseException)]
    namespace = {"_alidade_peer": peer, "_alidade_class": number, "__module__": "work", "__doc__": None}
    if not errors:
        namespace.update(_COMMON)
    else:
        namespace.update({"__getattr__": _instance_get, "__str__": lambda self: self.__dict__["_alidade_text"]})
    if not errors:
        forwarded = [one for one in _FORWARDED if one in methods]
        namespace.update({one: _forward(one) for one in forwarded})
        namespace.update({one: _arithmetic(one) for one in _ARITHMETIC if one in methods})
        namespace.update({one: make for one, make in (("__exit__", _exit), ("__await__", _await)) if one in methods})
    made_of = tuple(base for base in bases if isinstance(base, WorkClass)) + tuple(
        base for base in errors if not isinstance(base, WorkClass)
    )
    return WorkClass(name, made_of or (object,), namespace)


def make_instance(kind, number):
    made = object.__new__(kind)
    object.__setattr__(made, "_alidade_id", number)
    return made


def is_instance(value):
    return isinstance(type(value), WorkClass)


def number_of(value):
    """The number under which the work knows what stands for a thing of it; None for another value."""
    kind = type(value)
    if isinstance(value, type):
        return type.__getattribute__(value, "_alidade_class") if isinstance(kind, type) and issubclass(kind, WorkClass) else None
    if isinstance(kind, WorkClass) or kind in (WorkFunction, WorkModule):
        return object.__getattribute__(value, "_alidade_id")
    return vars(value).get("_alidade_id") if isinstance(value, BaseException) else None


class WorkFunction(object):
    def __init__(self, peer, number, name):
        object.__setattr__(self, "_alidade_peer", peer)
        object.__setattr__(self, "_alidade_id", number)
        object.__setattr__(self, "__name__", name)

    def __call__(self, *args, **kwargs):
        return self._alidade_peer.ask("call", self._alidade_id, list(args), kwargs)

    def __getattr__(self, name):
        return _get(self._alidade_peer, self._alidade_id, name)

    def __setattr__(self, name, value):
        self._alidade_peer.ask("set", self._alidade_id, name, value)


class WorkModule(types.ModuleType):
    def __init__(self, name, peer, number):
        types.ModuleType.__init__(self, name)
        object.__setattr__(self, "_alidade_peer", peer)
        object.__setattr__(self, "_alidade_id", number)

    def __getattr__(self, name):
        if name in ("__path__", "__file__", "__spec__"):
            raise AttributeError(name)
        if name == "__all__":
            raise strict.fail("`import *` would let the work choose the names, also those of built-in functions")
        return _get(self._alidade_peer, self._alidade_id, name)

    def __setattr__(self, name, value):
        if name.startswith("__"):
            object.__setattr__(self, name, value)
        else:
            self._alidade_peer.ask("set", self._alidade_id, name, value)

    def __delattr__(self, name):
        self._alidade_peer.ask("delete", self._alidade_id, name)
