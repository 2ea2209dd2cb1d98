"""
What tests assert with, where the work is loaded into the same process: looked at again when a test ends. It finds changed
functions and classes of these modules, and no other change.
"""
import sys
import types

_PREFIXES = ("builtins", "unittest", "pytest", "_pytest", "pluggy")
# Words of unittest on a class, by which a failure of its tests is none.
_EXCUSES = frozenset(("__unittest_expecting_failure__", "__unittest_skip__"))
_MADE = (types.FunctionType, types.BuiltinFunctionType, type, staticmethod, classmethod, property)


def guard_framework():
    """Returns what says whether everything is still as it was. Call it before anything of the work is loaded."""
    seen = []
    classes = []
    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] in _PREFIXES and module is not None:
            _look_at(vars(module), seen)
            for one in list(vars(module).values()):
                if isinstance(one, type) and one.__module__ == name:
                    _look_at(vars(one), seen)
                    classes.append((vars(one), frozenset(vars(one))))
    # Taken now: the work may replace the built-in names.
    function = types.FunctionType
    methods = frozenset((function, staticmethod, classmethod, property))
    kind_of = type
    excuses = _EXCUSES

    def is_whole():
        for names, name, value, code, defaults in seen:
            if name not in names or names[name] is not value:
                return False
            if kind_of(value) is function and (value.__code__ is not code or value.__defaults__ is not defaults):
                return False
        for names, known in classes:
            # A method that a class inherited, and has of its own now.
            for name in names:
                if name not in known and (kind_of(names[name]) in methods or name in excuses):
                    return False
        return True

    return is_whole


def _look_at(names, seen):
    for name, value in list(names.items()):
        if isinstance(value, _MADE):
            seen.append((names, name, value, getattr(value, "__code__", None), getattr(value, "__defaults__", None)))
