"""Serves one page of MiniWoB++ to the screen, and tells at /graded how its first episode ended.

    python3 serve.py click-test 3           at port 8000
    python3 serve.py click-test 3 0         at a free port, which is printed

The agent has a mouse and a keyboard of the browser alone, so it cannot send what the page sends: that has a word which only the
page's own scripts hold, in a header that no form and no address can set.
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
#: Pages whose reward tells how near an answer came, and the reward from which it is near enough.
NEAR = {
    **{page: 0.8 for page in ("bisect-angle", "circle-center", "draw-circle", "draw-line", "find-midpoint", "right-angle")},
    **{page: 0.95 for page in ("use-colorwheel", "use-colorwheel-2")},
}
lock = Lock()


def is_solved(page, raw):
    """Where a page rewards parts of the right answer, all of it is asked for."""
    return raw is not None and raw >= NEAR.get(page, 1)


def handler_of(page, seed):
    class Episode(Pages):
        word = secrets.token_urlsafe(16)
        #: The reward of the first episode that ended, before any discount for time; null: none ended.
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
                # What happens after the end counts for nothing, another try neither.
                if not Episode.ended["ended"]:
                    Episode.ended = {"ended": True, "raw": raw if is_number else None}
            return self.send_json(200, {})

    return Episode


if __name__ == "__main__":
    name, number = sys.argv[1], int(sys.argv[2])
    port = int(sys.argv[3]) if len(sys.argv) > 3 else PORT
    # The first process of a container gets no signal that it does not ask for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ThreadingHTTPServer(("127.0.0.1", port), handler_of(name, number)) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
