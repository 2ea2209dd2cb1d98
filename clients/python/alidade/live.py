"""Rollouts that a trainer's own loop asks for one by one, in asyncio (docs/trainers-live.md). Standard library alone.

    live = Live(Service().set("grpo-17", samples=8), format="flat")
    line = await live.rollout("step-3/fix-slug", 0, "fix-slug")         # line["result"], line["rows"]
    with fenced(service, step=4): load_weights()
"""

import asyncio
import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from .routing import Replay
from .service import checked_kept_sets

# Requests that are short: they submit a rollout or read one that is over. Nothing waits in these threads.
THREADS = 8
# What a page of results without rows holds at most.
PAGE = 1_000


class Live:
    """`run`: the set. One thread reads which rollouts are over, for all requests together. `after`: a cursor of single rollouts from
    the trainer's checkpoint. It only saves reading: rollouts before it are found too. `replay`: rows come with the bytes of their
    experts, for a trainer that replays them. `kept_sets`: "train" for a trainer that renormalises over kept tokens (docs/kept-tokens.md)."""

    def __init__(self, run, format="flat", after=None, replay=False, kept_sets=None):
        self.run, self.cursor, self._format = run, after, format
        self.replay = Replay() if replay else None
        self._kept_sets = checked_kept_sets(kept_sets)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="alidade")
        self._lock, self._waiting, self._follower = threading.Lock(), {}, None
        self._asked = {}

    def fresh_key(self, base):
        """A key for a group that has none of its trainer's own: the same ones, in their order, when a step is done again."""
        with self._lock:
            self._asked[base] = self._asked.get(base, -1) + 1
            return f"{base}/{self._asked[base]}"

    def key_of(self, group, index):
        """Returns the key of a trainer's own group. If the trainer asks for the same place again in one process, the key is a new one,
        because it did not train on the earlier rollout: it was stale, had no reward, or was filtered out."""
        again = self.fresh_key(f"{group} {index}").rpartition("/")[2]
        return f"{group}" if again == "0" else f"{group}/{again}"

    async def rollout(self, key, index, task):
        """The line of one rollout when it is over: `result`, and `rows` in the format, where there are any."""
        rollout = await self._in_thread(lambda: self.run.rollout(key, index, task, wait=False))
        over = self._wait_for(rollout)
        # It may have been over before it was asked for: a trainer that was started again asks once more.
        line = await self._in_thread(lambda: self._line(rollout))
        if line["result"] is None:
            await _unharmed(over)
            line = await self._in_thread(lambda: self._line(rollout))
        else:
            # Another request may wait for the same rollout.
            self._tell(rollout, None)
        _log_too_long(line)
        return line

    async def rollouts(self, asked):
        """The lines of (key, index, task) in their order."""
        return await asyncio.gather(*(self.rollout(*one) for one in asked))

    def _line(self, rollout):
        query = {"payload": "rows", "format": self._format, "wait": 0, "experts": None if self.replay is None else "true"}
        query["kept_sets"] = self._kept_sets
        return self.run.service.request("GET", f"/sets/{self.run.id}/rollouts/{rollout}", query=query)

    def _in_thread(self, work):
        return asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _wait_for(self, rollout):
        with self._lock:
            over = self._waiting.setdefault(rollout, Future())
            if self._follower is None or not self._follower.is_alive():
                self._follower = threading.Thread(target=self._follow, name="alidade-results", daemon=True)
                self._follower.start()
        return over

    def _follow(self):
        try:
            for self.cursor, key, line in self._read():
                self._tell(key, line)
            error = RuntimeError(f"the set {self.run.key} was drained, so it takes no rollout any more")
        except Exception as failed:  # whoever waits gets it, whatever it is
            error = failed
        with self._lock:
            waiting, self._waiting, self._follower = self._waiting, {}, None
        for over in waiting.values():
            over.set_exception(error)

    def _tell(self, key, line):
        with self._lock:
            over = self._waiting.pop(key, None)
        if over is not None:
            over.set_result(line)

    def _read(self):
        for group in self.run.groups(after=self.cursor, whole=False, payload="none", limit=PAGE, expired="skip"):
            yield group.cursor, group.results[0]["rollout_id"], None


class LiveGroups(Live):
    """The same for formats that read whole groups, of a set with samples=1: each rollout is a group under a key of its own, and
    `rollout` gives the line of that group."""

    async def rollout(self, key, task):
        over = self._wait_for(key)
        await self._in_thread(lambda: self.run.submit([(key, task)]))
        before = await _unharmed(over)
        line = await self._in_thread(lambda: self._group(key, before))
        _log_too_long(line)
        return line

    def _group(self, key, before):
        """The line of the group behind the cursor `before`."""
        query = {"whole_groups": "true", "payload": "rows", "format": self._format, "after": before, "limit": 1, "expired": "skip"}
        query["kept_sets"] = self._kept_sets
        for line in self.run.service.stream(f"/sets/{self.run.id}/results", query, 0):
            if line["group_key"] == key:
                return {"result": line["results"][0], "rows": line["rows"], "report": line["report"]}
        raise RuntimeError(f"the result of {key} is expired: give the set a longer expire_after")

    def _read(self):
        # Without rows: after a restart all groups of the set come before the first new one.
        for group in self.run.groups(after=self.cursor, payload="none", limit=PAGE, expired="skip"):
            yield group.cursor, group.key, self.cursor


def _unharmed(over):
    """Waits for it. A waiter that is cancelled leaves it as it is for the reader and for others."""
    return asyncio.shield(asyncio.wrap_future(over))


def _log_too_long(line):
    """Warns if the rollout is left out as `line_too_long`. It counts as one without rows, and no other message says why."""
    if (line.get("report") or {}).get("left_out_rollouts", {}).get("line_too_long"):
        said = "the rollout %s has no rows: with the pictures and experts that they name, they are too long for the service's answer (line_too_long)"
        logging.getLogger("alidade").warning(said, line["result"]["rollout_id"])


def fenced(service, step, **options):
    """The gate behind which the trainer brings the weights of its step into the engines: `with fenced(service, 7): …`."""
    return service.weights(version=f"step-{step}", step=step, **options)


def is_measured(line):
    """Whether the rollout has rows and a reward. What has none is in no loss and in no baseline."""
    return bool(line["rows"]) and line["result"]["reward"] is not None


def why_unmeasured(line):
    """Why `is_measured` is false."""
    if line["result"]["reward"] is None:
        error = line["result"]["error"]
        return "it has no reward" if error is None else f"it has no reward ({error['code']})"
    report = line.get("report") or {}
    reasons = sorted({**report.get("left_out", {}), **report.get("left_out_rollouts", {}), **report.get("left_out_groups", {})})
    return f"none of its tokens can be trained ({', '.join(reasons) or 'no reason on record'}; docs/reasons.md)"


def refuse_other_temperature(temperature):
    if temperature is not None and float(temperature) != 1.0:
        raise ValueError(f"temperature is {temperature}: rows are sampled at 1.0, so train at 1.0 and evaluate with a set of your own")
