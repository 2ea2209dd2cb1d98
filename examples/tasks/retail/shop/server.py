"""A shop's four tools over SQLite: a server of tools (MCP) over Streamable HTTP, of Python's own library alone."""

import json
import os
import signal
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

DATABASE = "/srv/data/shop.db"
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

SEED = """
CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL);
CREATE TABLE orders (id TEXT PRIMARY KEY, user_id TEXT NOT NULL, item TEXT NOT NULL, status TEXT NOT NULL, reason TEXT);
INSERT INTO users VALUES ('mira', 'Mira Lang', 'mira@shop.example'), ('otis', 'Otis Berg', 'otis@shop.example');
INSERT INTO orders VALUES
  ('W1', 'mira', 'lamp', 'open', NULL),
  ('W2', 'mira', 'chair', 'sent', NULL),
  ('W3', 'otis', 'lamp', 'open', NULL);
"""


def text_argument(name, about):
    return {name: {"type": "string", "description": about}}


def tool(name, about, properties):
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"name": name, "description": about, "inputSchema": schema}


TOOLS = [
    tool("find_user", "The id of a user by the whole name", text_argument("name", "as in Mira Lang")),
    tool("list_orders", "All orders of a user", text_argument("user_id", "from find_user")),
    tool(
        "cancel_order",
        "Cancels an open order. One that was sent cannot be cancelled.",
        {**text_argument("order_id", "from list_orders"), **text_argument("reason", "why, in a few words")},
    ),
    tool(
        "set_email",
        "Changes a user's address",
        {**text_argument("user_id", "from find_user"), **text_argument("email", "the new address")},
    ),
]


class Refused(Exception):
    """What the model reads as an error."""


def find_user(db, name):
    row = db.execute("SELECT id FROM users WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise Refused(f"there is no user {name}")
    return {"user_id": row[0]}


def list_orders(db, user_id):
    rows = db.execute("SELECT id, item, status FROM orders WHERE user_id = ? ORDER BY id", (user_id,)).fetchall()
    return [{"order_id": order, "item": item, "status": status} for order, item, status in rows]


def cancel_order(db, order_id, reason):
    row = db.execute("SELECT status FROM orders WHERE id = ?", (order_id,)).fetchone()
    if row is None:
        raise Refused(f"there is no order {order_id}")
    if row[0] != "open":
        raise Refused(f"order {order_id} is {row[0]}")
    db.execute("UPDATE orders SET status = 'cancelled', reason = ? WHERE id = ?", (reason, order_id))
    return {"order_id": order_id, "status": "cancelled"}


def set_email(db, user_id, email):
    if db.execute("UPDATE users SET email = ? WHERE id = ?", (email, user_id)).rowcount == 0:
        raise Refused(f"there is no user {user_id}")
    return {"user_id": user_id, "email": email}


ACTIONS = {"find_user": find_user, "list_orders": list_orders, "cancel_order": cancel_order, "set_email": set_email}
LOCK = Lock()


def call_tool(name, arguments):
    wanted = next((one["inputSchema"]["required"] for one in TOOLS if one["name"] == name), None)
    if wanted is None:
        return content(f"there is no tool {name}", True)
    if sorted(arguments) != sorted(wanted) or not all(isinstance(value, str) for value in arguments.values()):
        return content(f"{name} takes the texts {', '.join(wanted)}", True)
    # One after the other: each call is a transaction.
    with LOCK, sqlite3.connect(DATABASE) as db:
        try:
            return content(json.dumps(ACTIONS[name](db, **arguments)), False)
        except Refused as refusal:
            return content(str(refusal), True)


def content(text, is_error):
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def answer(method, params):
    if method == "initialize":
        wanted = params.get("protocolVersion")
        version = wanted if wanted in VERSIONS else VERSIONS[0]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call_tool(params.get("name"), params.get("arguments") or {})
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            return self.send(202, b"")
        result = answer(message["method"], message.get("params") or {})
        body = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        self.send(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}).encode())

    def do_GET(self):
        self.send(405, b"")

    def send(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if not os.path.exists(DATABASE):
    with sqlite3.connect(DATABASE) as seeded:
        seeded.executescript(SEED)
# The first process of a container gets no signal that it does not ask for.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
