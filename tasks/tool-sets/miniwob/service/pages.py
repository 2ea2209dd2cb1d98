"""Serves the published pages of MiniWoB++, with `episode.js` after their core script.

Each page lies below a folder that names its seed: /3/miniwob/click-test.html. It asks for its files by relative paths.
"""

import json
import re
import secrets
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote, urlsplit

HERE = Path(__file__).parent
HTML = HERE / "site/miniwob/html"
PORT = 8000

KINDS = {".css": "text/css", ".gif": "image/gif", ".html": "text/html", ".js": "text/javascript", ".png": "image/png", ".svg": "image/svg+xml"}
PATH = re.compile(r"/(?P<seed>\d{1,9})/(?P<file>(?:core|common|miniwob)/[\w./-]+)")

#: Some pages show typed text as markup. Such markup must run no script, so only the page's own scripts have the nonce.
POLICY = (
    "default-src 'self'; script-src 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'none'"
)


def page_names():
    return sorted(path.stem for path in (HTML / "miniwob").glob("*.html"))


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: The secret that a page sends with the end of its episode; None: it sends no end.
    word = None

    def may_show(self, seed, page):
        """May this page be shown with this seed?"""
        raise NotImplementedError

    def do_GET(self):
        address = urlsplit(self.path)
        found = PATH.fullmatch(unquote(address.path))
        file = found and (HTML / found["file"]).resolve()
        if not found or not file.is_relative_to(HTML.resolve()) or not file.is_file() or file.suffix not in KINDS:
            return self.send(404, b"not found", "text/plain")
        seed, content = int(found["seed"]), file.read_bytes()
        if file.suffix == ".html":
            # A query in the address would make another task of the page.
            if address.query or not self.may_show(seed, file.stem):
                return self.send(404, b"not found", "text/plain")
            return self.send_page(content.decode())
        if file == HTML.resolve() / "core/core.js":
            content += b"\n" + self.episode(seed)
        return self.send(200, content, KINDS[file.suffix])

    def send_page(self, text):
        nonce = secrets.token_urlsafe(16)
        marked = re.sub(r"<script\b", f'<script nonce="{nonce}"', text)
        self.send(200, marked.encode(), KINDS[".html"], {"content-security-policy": POLICY.format(nonce=nonce)})

    def episode(self, seed):
        return (HERE / "episode.js").read_text().replace("SEED", json.dumps(seed)).replace("WORD", json.dumps(self.word)).encode()

    def send(self, status, body, kind, headers=None):
        self.send_response(status)
        for name, value in {"content-type": f"{kind}; charset=utf-8", "cache-control": "no-store", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_json(self, status, value):
        self.send(status, json.dumps(value).encode(), "application/json")

    def log_message(self, *_):
        pass
