"""Serves one page of MiniWoB++ to the screen. Reports at /graded how its first episode ended.

    python3 serve.py click-test 3           at port 8000
    python3 serve.py click-test 3 0         at a free port, which is printed

The agent has only a mouse and a keyboard in the browser, so it cannot send the page's report. The report has a secret word in a header
that no form and no address can set. Only the page's own scripts hold this word.
"""

import json
import math
import secrets
import signal
import sys
from http.server import ThreadingHTTPServer
from threading import Lock

from pages import PORT, Pages

LONGEST = 1_000
#: Pages that reward how near an answer comes, and the reward that is near enough.
NEAR = {
    **{page: 0.8 for page in ("bisect-angle", "circle-center", "draw-circle", "draw-line", "find-midpoint", "right-angle")},
    **{page: 0.95 for page in ("use-colorwheel", "use-colorwheel-2")},
}
lock = Lock()


def is_solved(page, raw):
    """True for the whole right answer. Parts of it are not enough, even if the page rewards them."""
    return raw is not None and raw >= NEAR.get(page, 1)


def handler_of(page, seed):
    class Episode(Pages):
        word = secrets.token_urlsafe(16)
        #: The end of the first episode. `raw`: its reward, before any discount for time; None: there is no reward.
        ended = {"ended": False, "raw": None}

        def may_show(self, asked_seed, asked_page):
            return (asked_seed, asked_page) == (seed, page)

        def do_POST(self):
            length = int(self.headers.get("content-length") or 0)
            if length > LONGEST:
                self.close_connection = True
                return self.send_json(413, {})
            body = self.rfile.read(length)
            if self.path == "/graded":
                with lock:
                    return self.send_json(200, {**Episode.ended, "solved": is_solved(page, Episode.ended["raw"])})
            if self.path != "/ended" or not secrets.compare_digest(self.headers.get("x-word", ""), self.word):
                return self.send_json(404, {})
            raw = json.loads(body)["raw"]
            is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool) and math.isfinite(raw)
            with lock:
                # Only the first end counts. Later events and other tries do not.
                if not Episode.ended["ended"]:
                    Episode.ended = {"ended": True, "raw": raw if is_number else None}
            return self.send_json(200, {})

    return Episode


if __name__ == "__main__":
    name, number = sys.argv[1], int(sys.argv[2])
    port = int(sys.argv[3]) if len(sys.argv) > 3 else PORT
    # The first process of a container gets only signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ThreadingHTTPServer(("127.0.0.1", port), handler_of(name, number)) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
