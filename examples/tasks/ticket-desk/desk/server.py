"""A help desk in the browser, on SQLite, of Python's own library alone. Pages need no script.

    GET  /               all tickets
    GET  /tickets/<id>   one of them, as a form
    POST /tickets/<id>   saves `assignee` and `status`, and leads back to all tickets
"""

import html
import signal
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qs

DATABASE = "/srv/data/desk.db"
LONGEST = 10_000

SEED = """
CREATE TABLE tickets (id INTEGER PRIMARY KEY, subject TEXT NOT NULL, status TEXT NOT NULL, assignee TEXT NOT NULL);
INSERT INTO tickets VALUES
  (1, 'The lamp flickers', 'open', ''),
  (2, 'A chair was delivered twice', 'open', 'otis'),
  (3, 'The invoice names another street', 'closed', 'mira'),
  (4, 'The lamp shade has a scratch', 'open', '');
"""

# Places are fixed, so that a known solution can be written down as clicks.
STYLE = """
body { margin: 0; font: 20px sans-serif }
h1 { position: absolute; left: 40px; top: 20px; margin: 0; font-size: 32px }
.row { position: absolute; left: 40px; width: 1000px; height: 44px; line-height: 44px; border: 1px solid #888; padding-left: 12px; color: #000; text-decoration: none }
.row span { position: absolute; left: 600px } .row b { position: absolute; left: 760px; font-weight: normal }
input, button, label { position: absolute; font: 20px sans-serif; box-sizing: border-box }
"""

database = sqlite3.connect(DATABASE, check_same_thread=False, isolation_level=None)
database.row_factory = sqlite3.Row
database.execute("PRAGMA journal_mode = WAL")
database.executescript(SEED)
lock = Lock()


def page(title, body):
    return f"<!doctype html><title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{body}"


def listed():
    rows = database.execute("SELECT * FROM tickets ORDER BY id").fetchall()
    return page("Tickets", "".join(line(row, 100 + 60 * place) for place, row in enumerate(rows)))


def line(row, top):
    words = f"{html.escape(row['subject'])}<span>{row['status']}</span><b>{html.escape(row['assignee'])}</b>"
    return f"<a class=row style='top:{top}px' href='/tickets/{row['id']}'>{words}</a>"


def form(row):
    def choice(status, left):
        checked = "checked" if row["status"] == status else ""
        place = f"style='left:{left}px;top:180px'"
        return f"<label {place}><input style='position:static' type=radio name=status value={status} {checked}> {status}</label>"

    return page(
        f"Ticket {row['id']}: {html.escape(row['subject'])}",
        "<form method=post>"
        "<label style='left:40px;top:108px'>Assignee</label>"
        f"<input name=assignee aria-label=Assignee autocomplete=off style='left:160px;top:100px;width:400px;height:44px' value='{html.escape(row['assignee'])}'>"
        f"{choice('open', 160)}{choice('closed', 300)}"
        "<button style='left:160px;top:240px;width:160px;height:50px'>Save</button>"
        "</form>",
    )


class Desk(BaseHTTPRequestHandler):
    def do_GET(self):
        with lock:
            if self.path == "/":
                return self.answer(200, listed())
            row = self.ticket()
        return self.answer(404, page("Not found", "")) if row is None else self.answer(200, form(row))

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        if length > LONGEST:
            return self.answer(413, page("Too long", ""))
        fields = parse_qs(self.rfile.read(length).decode(), keep_blank_values=True)
        assignee, status = fields.get("assignee", [""])[0], fields.get("status", [""])[0]
        with lock:
            row = self.ticket()
            if row is None or status not in ("open", "closed"):
                return self.answer(400, page("Bad request", ""))
            database.execute("UPDATE tickets SET assignee = ?, status = ? WHERE id = ?", (assignee, status, row["id"]))
        self.send_response(303)
        self.send_header("location", "/")
        self.send_header("content-length", "0")
        self.end_headers()

    def ticket(self):
        return database.execute("SELECT * FROM tickets WHERE id = ?", (self.path.removeprefix("/tickets/"),)).fetchone()

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


# The first process of a container gets no signal that it does not ask for.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("127.0.0.1", 8080), Desk).serve_forever()
