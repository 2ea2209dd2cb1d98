"""Prints the instruction of each page, and its solution if `solve.js` knows one: a JSON value a line.

    python3 list.py 2 click-test click-link …     seeds 0 and 1 of these pages
    python3 list.py 1 --without use-slider …      all pages but these

Opens each page in the browser of its tasks, at the size of their screen. So the coordinates of known solutions are valid in tasks.
"""

import json
import subprocess
import sys
import tempfile
import time
from http.server import ThreadingHTTPServer
from threading import Event, Thread

from pages import HERE, PORT, Pages, page_names

#: A page with all its solutions takes a second.
SECONDS_A_PAGE = 30
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking")


def listed(seeds, names):
    rows, done = [], Event()

    class Lister(Pages):
        def may_show(self, seed, page):
            return True

        def do_GET(self):
            if self.path == "/":
                return self.send(200, driver(seeds, names).encode(), "text/html")
            if self.path == "/solve.js":
                return self.send(200, (HERE / "solve.js").read_bytes(), "text/javascript")
            return super().do_GET()

        def do_POST(self):
            value = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_json(200, {})
            if value is None:
                done.set()
            else:
                rows.append(value)

    server = ThreadingHTTPServer(("127.0.0.1", PORT), Lister)
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = ["chromium", *FLAGS, f"--user-data-dir={profile}", "--window-size=1280,800", f"http://127.0.0.1:{PORT}/"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = []
        Thread(target=lambda: said.append(browser.stderr.read()), daemon=True).start()
        limit = time.monotonic() + 60 + SECONDS_A_PAGE * len(names) * seeds
        try:
            # If the browser has ended, it lists no more pages.
            while not done.wait(1) and browser.poll() is None and time.monotonic() < limit:
                pass
            is_done = done.is_set()
        finally:
            browser.kill()
    if not is_done:
        raise SystemExit(f"the browser listed {len(rows)} pages and stopped: {b''.join(said)[-1000:].decode(errors='replace')}")
    return rows


def wanted(asked):
    known = page_names()
    if asked[0] == "--without":
        return [name for name in known if name not in asked[1:]]
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise SystemExit(f"there is no page {', '.join(unknown)}: leave it out of pages")
    return asked


def driver(seeds, names):
    # The frame is as large as the screen of the tasks.
    return (
        "<!doctype html><style>body{margin:0}iframe{border:0;display:block}</style>"
        f"<script>const seeds = {seeds}, names = {json.dumps(names)};</script><script src=/solve.js></script>"
    )


if __name__ == "__main__":
    seeds, *asked = sys.argv[1:]
    for row in listed(int(seeds), wanted(asked)):
        print(json.dumps(row))
