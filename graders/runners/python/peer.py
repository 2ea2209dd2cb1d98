"""
One of two processes that call each other's functions: the tests, and the work. A call waits for its answer, and answers
meanwhile what the other side asks (a callback). Messages are lines of JSON: {"ask", "of", "args"} and {"value"} or {"error"}.
"""
import json
import threading

from .values import decode, encode


class Peer:
    """
    `side` has `ops` (name -> function of a target and arguments), `export(peer, value)` and `restore(peer, tag, wire)` for
    what stays, `told(error)`: what the other side learns of an error here, and `kept()`: an error that it must not swallow.
    `lost(why)` makes the exception for a connection that is of no use any more.
    """

    def __init__(self, connection, side):
        self._stream = connection.makefile("rwb")
        self._side = side
        self._own = []
        self._numbers = {}
        self._turn = threading.RLock()

    def ask(self, op, of, *args):
        """Throws what the other side threw, or what was kept back from it."""
        with self._turn:
            self._send({"ask": op, "of": of, "args": self.encode(list(args))})
            message = self._read()
            while message is not None and "ask" in message:
                self._answer(message)
                message = self._read()
            kept = self._side.kept()
            if kept is not None:
                raise kept
            if message is None:
                raise self._side.lost("the process of the work has ended")
            if "error" in message:
                raise self._decode(message["error"])
            return self._decode(message.get("value"))

    def serve(self):
        """Answers until the other side goes."""
        message = self._read()
        while message is not None:
            self._answer(message)
            message = self._read()

    def number(self, value):
        """The number of a thing of this side, which is kept for good."""
        known = self._numbers.get(id(value))
        if known is None:
            self._own.append(value)
            known = self._numbers[id(value)] = len(self._own) - 1
        return known

    def own(self, number):
        if type(number) is not int or not 0 <= number < len(self._own):
            raise ValueError("the other process named a thing that it was not given")
        return self._own[number]

    def encode(self, value):
        return encode(value, lambda one: self._side.export(self, one))

    def _decode(self, wire):
        try:
            return decode(wire, lambda tag, one: self._side.restore(self, tag, one))
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError, LookupError) as error:
            raise self._side.lost("a value of the other process could not be read: %s" % error)

    def _answer(self, message):
        try:
            does = self._side.ops.get(message.get("ask"))
            if does is None:
                raise ValueError("the other process may not ask for this")
            of = message.get("of")
            target = None if of is None else self.own(of)
            reply = {"value": self.encode(does(target, *self._decode(message.get("args"))))}
        except BaseException as error:
            reply = {"error": self._failure(error)}
        self._send(reply)

    def _failure(self, error):
        try:
            return self.encode(self._side.told(error))
        except Exception:
            return self.encode(TypeError("%s: its arguments cannot be sent" % type(error).__name__))

    def _send(self, message):
        try:
            self._stream.write(json.dumps(message).encode() + b"\n")
            self._stream.flush()
        except (OSError, ValueError) as error:
            raise self._side.lost("nothing can be sent: %s" % error)

    def _read(self):
        try:
            line = self._stream.readline()
        except OSError:
            return None
        try:
            message = json.loads(line.decode()) if line.endswith(b"\n") else None
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None
