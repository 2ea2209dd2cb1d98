"""
Runs inside the grading sandbox, in the process of the tests: what sealed-report.ts does for JavaScript. Rows are sealed
with a key that is read from stdin before anything of the work is loaded. The rows alone go to stdout: what is printed
goes to stderr. All names that are used later are taken here, for the work may replace what it finds in modules.
"""
import hashlib
import json
import os
import sys

_dumps = json.JSONEncoder(ensure_ascii=True).encode
_sha256 = hashlib.sha256
_write = os.write
_end = os._exit


def _hex(text):
    return _sha256(text.encode()).hexdigest()


class SealedReport:
    """`input` is a dict: `added`, `changed` (paths from the workdir), `memory` (path -> base64), `socket` (path or None)."""

    def __init__(self):
        # A descriptor that no program which the tests start inherits.
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        key, given = _read_all(0).split(b"\n")[:2]
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._key = key.decode()
        self._sequence = 0
        self.input = json.loads(given.decode())

    def begin(self):
        """The first row. Before it, what fails is no doing of the work."""
        if self.input["socket"] is not None and sys.version_info < (3, 8):
            why = "tests apart from the work need Python 3.8, and this is %s" % sys.version.split()[0]
            sys.stderr.write("%s: let the task say work_runs: together\n" % why)
            self.end(1)
        self._row("begun", None, None)

    def test(self, name, outcome):
        self._row("test", name, outcome)

    def complete(self):
        """The last row: without it a report counts as cut off. It ends the process, whatever the work left running."""
        self._row("complete", None, None)
        self.end(0)

    def end(self, code):
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        _end(code)

    def _row(self, kind, name, outcome):
        text = _dumps({"kind": kind, "name": name, "outcome": outcome, "sequence": self._sequence})
        self._sequence += 1
        rest = ("\n@report %s %s\n" % (_hex(self._key + _hex(self._key + text)), text)).encode()
        while rest:
            rest = rest[_write(self._descriptor, rest) :]


def _read_all(descriptor):
    parts = []
    while True:
        part = os.read(descriptor, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
