"""
Values as they cross between the tests and the work where those are two processes (peer.py). Data is copied: what arrives
is made anew, of the receiver's own classes. Only exact types are data, so that no subclass with an `__eq__` of its own
arrives as one. Everything else stays where it is and crosses as a number: `export` writes it, `restore` reads it.
"""
import base64
import builtins
import collections
import datetime
import decimal
import fractions
import pathlib
import uuid

_LEAVES = {type(None), bool, float, str}
_LISTS = {one.__name__: one for one in (list, tuple, set, frozenset)}
_BYTES = {one.__name__: one for one in (bytes, bytearray)}
# A decimal text of more digits is refused by Python 3.11 and later.
_LARGE = 1 << 1024


def _clock(value):
    return [value.hour, value.minute, value.second, value.microsecond, value.tzinfo]


# What each is made of again.
_STANDARD = {
    complex: lambda v: [v.real, v.imag],
    range: lambda v: [v.start, v.stop, v.step],
    slice: lambda v: [v.start, v.stop, v.step],
    decimal.Decimal: lambda v: [str(v)],
    fractions.Fraction: lambda v: [v.numerator, v.denominator],
    datetime.timedelta: lambda v: [v.days, v.seconds, v.microseconds],
    datetime.timezone: lambda v: [v.utcoffset(None)],
    datetime.date: lambda v: [v.year, v.month, v.day],
    datetime.time: _clock,
    datetime.datetime: lambda v: [v.year, v.month, v.day] + _clock(v),
    pathlib.PosixPath: lambda v: [str(v)],
    pathlib.PurePosixPath: lambda v: [str(v)],
    uuid.UUID: lambda v: [str(v)],
    collections.OrderedDict: lambda v: [[list(pair) for pair in v.items()]],
    collections.defaultdict: lambda v: [None, dict(v)],
    collections.Counter: lambda v: [dict(v)],
    collections.deque: lambda v: [list(v), v.maxlen],
}
_PURE = "abs all any ascii bin callable chr divmod hash hex iter len max min next oct ord pow repr round sorted sum".split()
# A class or function of these is known to both sides by its name: none runs code that it is given as text.
_APART = {type, super, property, classmethod, staticmethod, memoryview}
_KNOWN = {one.__module__ + "." + one.__name__: one for one in _STANDARD}
_KNOWN.update({"builtins." + name: getattr(builtins, name) for name in _PURE})
for _name, _one in vars(builtins).items():
    if isinstance(_one, type) and _one not in _APART and not _name.startswith("_"):
        _KNOWN["builtins." + _name] = _one
_NAMES = {id(one): name for name, one in _KNOWN.items()}


def known_name(value):
    """The name under which both sides know a class or function; None for another value."""
    return _NAMES.get(id(value))


def known(name):
    """What both sides know by this name. Throws KeyError for another."""
    return _KNOWN[name]


def encode(value, export):
    """As JSON. Throws RecursionError for what holds itself."""
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is int:
        return value if -_LARGE < value < _LARGE else {"int": hex(value)}
    name = kind.__name__
    if _LISTS.get(name) is kind:
        return {name: [encode(one, export) for one in value]}
    if _BYTES.get(name) is kind:
        return {name: base64.b64encode(value).decode()}
    if kind is dict:
        return {"dict": [[encode(key, export), encode(one, export)] for key, one in value.items()]}
    if kind in _STANDARD:
        return {"of": known_name(kind), "with": [encode(one, export) for one in _STANDARD[kind](value)]}
    if value is NotImplemented or value is Ellipsis:
        return {"constant": repr(value)}
    if known_name(value) is not None:
        return {"known": known_name(value)}
    return export(value)


def decode(wire, restore):
    """Throws ValueError for what `encode` does not write."""
    if wire is None or isinstance(wire, (bool, int, float, str)):
        return wire
    if not isinstance(wire, dict) or not wire:
        raise ValueError("the other process sent a value of no known kind")
    tag = next(iter(wire))
    held = wire[tag]
    if tag == "int":
        return int(held, 16)
    if tag in _LISTS:
        return _LISTS[tag]([decode(one, restore) for one in held])
    if tag in _BYTES:
        return _BYTES[tag](base64.b64decode(held))
    if tag == "dict":
        return {decode(key, restore): decode(one, restore) for key, one in held}
    if tag == "constant":
        return NotImplemented if held == "NotImplemented" else Ellipsis
    if tag == "of":
        made = _KNOWN[held]
        if made not in _STANDARD:
            raise ValueError("the other process sent data of no known kind")
        return made(*[decode(one, restore) for one in wire["with"]])
    return restore(tag, wire)


def exception_base(kind):
    """The nearest built-in class of an exception."""
    return next(one for one in kind.__mro__ if known_name(one) is not None)
