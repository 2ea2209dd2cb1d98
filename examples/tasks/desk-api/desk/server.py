"""A help desk's tickets over HTTP and SQLite, of Python's own library alone.

    GET   /tickets        all tickets
    GET   /tickets/<id>   one of them
    PATCH /tickets/<id>   changes `status` (open, closed) or `assignee`, given as JSON
"""

import json
import signal
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

DATABASE = "/srv/data/desk.db"
LONGEST = 10_000

SEED = """
CREATE TABLE tickets (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, status TEXT NOT NULL, assignee TEXT);
INSERT INTO tickets VALUES
  (1, 'The lamp flickers', 'open', NULL),
  (2, 'A chair was delivered twice', 'open', 'otis'),
  (3, 'The invoice names another street', 'closed', 'mira');
"""

database = sqlite3.connect(DATABASE, check_same_thread=False, isolation_level=None)
database.row_factory = sqlite3.Row
database.execute("PRAGMA journal_mode = WAL")
database.executescript(SEED)
lock = Lock()


def ticket(name):
    row = database.execute("SELECT * FROM tickets WHERE id = ?", (name,)).fetchone()
    return None if row is None else dict(row)


def change(name, wanted):
    if not isinstance(wanted, dict) or not wanted or not set(wanted) <= {"status", "assignee"}:
        return 400, {"error": "give status or assignee"}
    if wanted.get("status", "open") not in ("open", "closed"):
        return 400, {"error": "status is open or closed"}
    if not isinstance(wanted.get("assignee", ""), str):
        return 400, {"error": "assignee is a name"}
    if ticket(name) is None:
        return 404, {"error": f"there is no ticket {name}"}
    for column, value in wanted.items():
        database.execute(f"UPDATE tickets SET {column} = ? WHERE id = ?", (value, name))
    return 200, ticket(name)


class Desk(BaseHTTPRequestHandler):
    def do_GET(self):
        with lock:
            if self.path == "/tickets":
                return self.answer(200, [dict(row) for row in database.execute("SELECT * FROM tickets ORDER BY id")])
            found = ticket(self.path.removeprefix("/tickets/"))
        return self.answer(404, {"error": "not found"}) if found is None else self.answer(200, found)

    def do_PATCH(self):
        length = int(self.headers.get("content-length") or 0)
        if length > LONGEST:
            return self.answer(413, {"error": "too long"})
        try:
            wanted = json.loads(self.rfile.read(length))
        except ValueError:
            return self.answer(400, {"error": "no JSON"})
        with lock:
            return self.answer(*change(self.path.removeprefix("/tickets/"), wanted))

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


# The first process of a container gets no signal that it does not ask for.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("127.0.0.1", 8080), Desk).serve_forever()
