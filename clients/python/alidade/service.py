"""The client of `alidade service` (docs/service.md). Every request may be sent twice and counts once, so a service that is
restarted is waited for, and a trainer that is restarted goes on from the cursor in its checkpoint."""

import contextlib
import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# A long poll; proxies close what is silent for a minute.
POLL_SECONDS = 30
# Tasks have a few kilobytes. Where they have more, a request has fewer: the service holds what it reads in memory.
GROUPS_A_REQUEST = 200
CHARS_A_REQUEST = 8 * 1024 * 1024
# The service takes 10 000 at most.
ROLLOUTS_A_REQUEST = 2_000
# The service reads the trajectories of a whole batch.
DRIFT_SECONDS = 300


class ServiceError(Exception):
    """The service refused: `status`, `code` (stable), `param` (the field at fault, or None)."""

    def __init__(self, status, code, message, param):
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


class Service:
    """`url` and `token`, or the `folder` of a service on this machine (its service.json is read again after each restart).

    `patience`: seconds that a service is waited for which cannot be reached, or whose answers break off; then ConnectionError is
    raised, and at once for a certificate that is not trusted. `ca`: PEM file of the certificate that an https address is trusted by
    (default: the system's).
    """

    def __init__(self, url=None, token=None, folder="runs/service", patience=600, ca=None):
        self._url, self._token = _checked(url), token
        self._trust = None if ca is None else ssl.create_default_context(cafile=ca)
        self._file = None if url else os.path.join(folder, "service.json")
        self._patience = patience

    def set(self, key, **spec):
        """The set of that key, made where it is not there yet. `spec`: harness, samples, retries, purpose, sampling, budgets,
        priority, weight, labels, webhook; max_version_lag with groups_per_step, on_stale, group_versions; over_provision, early_stop,
        straggler_cut, allocation, branching; expire_after; pinned_policy, seed (with purpose="eval"). The same key with another spec is refused (409)."""
        return RolloutSet(self, self.request("PUT", "/sets/" + _quoted(key), spec))

    def health(self):
        return self.request("GET", "/health")

    def nodes(self):
        return self.request("GET", "/nodes")["nodes"]

    @contextlib.contextmanager
    def weights(self, version, step=None, mode="drain", timeout=600, engines=None, engine_version=None, fence="trainer", otherwise=None):
        """Shuts the engines' gate, runs the body, which loads the weights, names them, and opens the gate.

        mode="continue": running calls leave their engines with their tokens and go on from those under the new weights. otherwise: what one
        does that cannot ("drain", the default: it ends first; "again": it is asked anew).

        Where the body fails the gate stays shut, because only the trainer knows what the engines hold now; entering again
        (also after a restart of either side) goes on with the same fence.
        """
        pause = {"fence": fence, "mode": mode, "timeout_seconds": timeout}
        if otherwise is not None:
            pause["otherwise"] = otherwise
        if engines is not None:
            pause["engines"] = list(engines)
        paused = self.request("POST", "/control/pause", pause, seconds=timeout)
        yield paused
        policy = {"version": version, "step": step, "fence": fence}
        if engine_version is not None:
            policy["engine_version"] = engine_version
        self.request("PUT", "/control/policy", policy)
        self.request("POST", "/control/resume", {"fence": fence})

    def request(self, method, path, body=None, query=None, seconds=0, lines=None):
        """The answer's JSON. `seconds`: how long the service itself may take. `lines`: the body as NDJSON."""
        return json.loads(self._ask(_text, method, path, body, query, seconds, lines))

    def stream(self, path, query, seconds):
        """The lines of an answer. Ends early where the answer breaks off behind a line; where it breaks off before the first one, it is
        asked for again. So no line means that there is none."""
        answer, lines, line = self._ask(_begun_lines, "GET", path, None, query, seconds, None)
        with answer:
            while line is not None:
                yield json.loads(line)
                try:
                    line = next(lines, None)
                except (OSError, http.client.HTTPException):
                    return

    def _ask(self, read, method, path, body, query, seconds, lines):
        """What `read` makes of the answer. Tries again, with growing pauses, while the service is away (502, 503, 504), has no room (503, 429), or
        its answer breaks off."""
        until = time.monotonic() + self._patience
        pause, told = 0.1, -60
        while True:
            try:
                return read(self._send(method, path, body, query, seconds, lines))
            except ServiceError as refusal:
                if refusal.status not in (429, 502, 503, 504) or time.monotonic() > until:
                    raise
                reason = refusal
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(getattr(error, "reason", None), ssl.SSLCertVerificationError):
                    raise ConnectionError(f"the service's certificate is not trusted; name its CA's file as ca: {error.reason}") from error
                if time.monotonic() > until:
                    raise ConnectionError(f"no service answers after {self._patience} s: {self._without(error)}") from error
                reason = error
            # A pause of two seconds and more is no hiccup; then each minute, for a person who looks at a silent trainer.
            if pause > 2 and time.monotonic() - told > 60:
                left = max(0, round(until - time.monotonic()))
                print(f"alidade: waiting up to {left} s for the service: {self._without(reason)}", file=sys.stderr, flush=True)
                told = time.monotonic()
            time.sleep(pause)
            pause = min(2 * pause, 5)

    def _without(self, error):
        """Why there is no answer, and what to do where no service of this machine has written its address."""
        if self._file is None or not isinstance(error, FileNotFoundError):
            return error
        return f"there is no {os.path.abspath(self._file)}; start `alidade service` here, or give Service its url or folder"

    def _send(self, method, path, body, query, seconds, lines):
        url, token = self._address()
        data, kind = None, "application/json"
        if lines is not None:
            data, kind = b"".join(json.dumps(line).encode() + b"\n" for line in lines), "application/x-ndjson"
        elif body is not None:
            data = json.dumps(body).encode()
        if query:
            path += "?" + urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})
        headers = {"authorization": f"Bearer {token}", "content-type": kind}
        request = urllib.request.Request(url + path, data=data, headers=headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=seconds + 60, context=self._trust)
        except urllib.error.HTTPError as error:
            if path == "/health" and error.code == 503 and error.headers.get_content_type() == "application/json":
                # Its answer: what is down, and why.
                return error
            raise _refusal(error) from None

    def _address(self):
        if self._file is None:
            return self._url.rstrip("/"), self._token or os.environ.get("ALIDADE_SERVICE_TOKEN", "")
        with open(self._file) as file:
            found = json.load(file)
        return found["url"], self._token or found["token"] or os.environ.get("ALIDADE_SERVICE_TOKEN", "")


class Group:
    """A line of results: `results` (a dict for each rollout, by place), `rows` in the export format, `report` (what of it is in
    no row, and why), `trajectories`, `records` of their attempts, and the `cursor` behind it. What was not asked for is None. `spare`: results beside those
    that an over-provisioned group is made of. `mixed_policies`: several policies sampled it; None for a single rollout."""

    def __init__(self, line):
        self.cursor = line["cursor"]
        self.results = line["results"] if "results" in line else [line["result"]]
        self.key = self.results[0]["group_key"] if self.results else line.get("group_key")
        self.rows, self.report = line.get("rows"), line.get("report")
        self.trajectories, self.records = line.get("trajectories"), line.get("records")
        self.pictures = line.get("pictures")  # base64 by SHA-256: those that the rows or records name, and kept tokens
        self.spare, self.mixed_policies = line.get("spare", []), line.get("mixed_policies")

    @property
    def rewards(self):
        """By place; None where nothing was measured."""
        return [result["reward"] for result in self.results]

    @property
    def policies(self):
        """Versions of the weights that the group was sampled with."""
        return sorted({policy["version"] for result in self.results for policy in result["policies"]})

    @property
    def lag(self):
        """Policy steps that the oldest rollout is behind; None where that of one is unknown."""
        lags = [result["lag"] for result in self.results]
        return None if not lags or None in lags else max(lags)

    @property
    def stale(self):
        """A rollout of it is beyond max_version_lag."""
        return any(result["stale"] for result in self.results)

    @property
    def biases(self):
        """Group tools of the set that leave slow rollouts out."""
        return self.results[0]["biases"] if self.results else []


class RolloutSet:
    """`spec`: what the set was made with, and what it left out as it is by default."""

    def __init__(self, service, state):
        self.service, self.id, self.key, self.spec = service, state["set_id"], state["key"], state["spec"]
        self._path = "/sets/" + self.id
        # An evaluation has no rows for training.
        self._payload = "none" if self.spec["purpose"] == "eval" else "rows"

    def submit(self, groups, pass_rate=None, of=(), pass_reward=1, with_unmeasured=False, on_left_out=None):
        """`groups`: (key, task) pairs; a task is a name that the service knows, or a dict in Alidade's own form. A key that was
        submitted before is not submitted again, so a restarted trainer may submit all of it. Returns the new rollouts.

        `pass_rate`: such as "0.1..0.9": only tasks whose measured pass rate in the sets `of` (their ids) lies in this range; a
        rollout passes with `pass_reward` or more. A task without a measured reward there is left out, or taken with
        with_unmeasured=True. `on_left_out` is called with each that is not taken: {group_key, task_id, why}."""
        query = None
        if pass_rate is not None or of:
            sets = [of] if isinstance(of, str) else list(of)
            query = {"pass_rate": pass_rate, "of": ",".join(sets) or None, "pass": pass_reward, "with_unmeasured": str(with_unmeasured).lower()}
        new, lines, chars = 0, [], 0
        most = max(1, min(GROUPS_A_REQUEST, ROLLOUTS_A_REQUEST // _places_of(self.spec)))
        for key, task in groups:
            line = {"group_key": str(key), "task": task}
            more = len(json.dumps(line))
            if len(lines) == most or (lines and chars + more > CHARS_A_REQUEST):
                new += self._submit(lines, query, on_left_out)
                lines, chars = [], 0
            lines.append(line)
            chars += more
        return new + (self._submit(lines, query, on_left_out) if lines else 0)

    def _submit(self, lines, query, on_left_out):
        answer = self.service.request("POST", self._path + "/groups", query=query, lines=lines)
        if query is not None and "left_out" not in answer:
            raise RuntimeError("pass_rate is given, and the service is of a version that chooses by none: bring it up to date")
        for group in answer.get("left_out", []):
            if on_left_out is not None:
                on_left_out(group)
        return answer["rollouts"]

    def rollout(self, group_key, index, task, payload=None, format="flat", wait=True, experts=False, kept_sets=None):
        """One rollout, which joins its group by key and index. Returns its line (`result`, and `rows` or `trajectories`, as
        `groups` gives them) when it is over; with wait=False its id at once. `experts`, `kept_sets`: as for `groups`."""
        kept_sets = checked_kept_sets(kept_sets)
        body = {"group_key": str(group_key), "index": index, "task": task}
        rollout = self.service.request("POST", self._path + "/rollouts", body)["rollout_id"]
        if not wait:
            return rollout
        query = {"payload": payload or self._payload, "format": format, "wait": POLL_SECONDS, "experts": _if_true(experts), "kept_sets": kept_sets}
        while True:
            line = self.service.request("GET", f"{self._path}/rollouts/{rollout}", query=query, seconds=POLL_SECONDS)
            if line["result"] is not None:
                return line

    def groups(self, after=None, whole=True, payload=None, format="flat", limit=10, step=None, expired=None, experts=False, kept_sets=None):
        """Groups behind the cursor as they become whole, each once, in one order; with whole=False each rollout by itself. Ends
        when the set was drained and all of it was given; before that it waits. `payload`: rows, trajectory, record (with
        trajectory) or none (default: rows, and none of an evaluation). `step`: the trainer's policy step, against which lag and
        staleness are held (default: the one in force when the rollouts ended). Where results behind the cursor are expired a
        ServiceError with status 410 is raised; expired="skip" gives what is left. `experts`: rows name experts, and their bytes
        come too (`alidade.routing`): about a kilobyte a token. `kept_sets`: "train" also trains calls that were sampled with `top_p`, `top_k` or
        `min_p`, where their kept tokens are on record. Their bytes come too (`alidade.support.sets(row, group.pictures)`). The trainer
        must renormalise over these tokens."""
        kept_sets = checked_kept_sets(kept_sets)
        payload = payload or self._payload
        query = {"whole_groups": str(whole).lower(), "payload": payload, "format": format, "limit": limit, "step": step, "expired": expired}
        query |= {"experts": _if_true(experts), "kept_sets": kept_sets}
        while True:
            # Asked before the results: what is over then is in them.
            is_over = self.state()["is_over"]
            asked = {**query, "after": after, "wait": 0 if is_over else POLL_SECONDS}
            given = 0
            for line in self.service.stream(self._path + "/results", asked, POLL_SECONDS):
                after, given = line["cursor"], given + 1
                yield Group(line)
            if is_over and given == 0:
                return

    def keep(self, cursor, consumer="trainer", step=None):
        """Says what this consumer has safe in its checkpoint. `step`: the policy step to which training on it has come;
        max_version_lag counts from there."""
        self.service.request("PUT", "/consumers/" + _quoted(consumer), {"set": self.id, "cursor": cursor, "step": step})

    def forget(self, consumer):
        """A consumer that is gone for good: its cursor holds back no expiry any more."""
        self.service.request("DELETE", "/consumers/" + _quoted(consumer), query={"set": self.id})

    def state(self):
        """Counts, ages and failures."""
        return self.service.request("GET", self._path)

    def figures(self, last=20):
        """Figures of the latest policy steps (docs/figures.md): a list of {policy_step, results, figures, pass_by_source}; a figure
        is {value, part, whole, reason}, and its value None where it is unknown."""
        return self.service.request("GET", self._path + "/figures", query={"last": last})["steps"]

    def evaluation(self, pass_reward=1):
        """What a set with purpose="eval" has come to (docs/service.md, Evaluation): a dict with `mean_reward`, `pass_at_k`, their
        95 % intervals, `policies`, and what is without a reward. A rollout passes with `pass_reward` or more."""
        return self.service.request("GET", self._path + "/figures", query={"pass": pass_reward})["evaluation"]

    def pass_rates(self, pass_reward=1):
        """How often each task was passed: a list of {task_id, measured, passed, pass_rate, pass_interval}; the rate is None where no
        result has a reward. A rollout passes with `pass_reward` or more."""
        return self.service.request("GET", self._path + "/pass-rates", query={"pass": pass_reward})["tasks"]

    def drift(self, lines, tolerance=0.05):
        """Holds logprobs that the trainer recomputed against the record (docs/drift.md). `lines`: of `trainer_logprobs(row, …)`, best
        of a whole batch, for its calls are held against each other. Returns mean and max |difference| in nats, `causes` and `calls`."""
        path = self._path + "/drift"
        return self.service.request("POST", path, query={"tolerance": tolerance}, lines=lines, seconds=DRIFT_SECONDS)

    def drain(self):
        """No more rollouts: `groups` ends when those that there are were given."""
        return self.service.request("POST", self._path + "/drain", {})

    def cancel(self, group=None, rollout=None, reason="cancelled by the trainer"):
        """What is not over of the set, of a group or of a rollout ends as `cancelled`. Returns how many."""
        path = self._path
        if rollout is not None:
            path += "/rollouts/" + _quoted(rollout)
        elif group is not None:
            path += "/groups/" + _quoted(group)
        return self.service.request("DELETE", path, query={"reason": reason})["cancelled"]


def _checked(url):
    """Refuses what can be no address: no patience mends it."""
    try:
        parts = urllib.parse.urlsplit(url or "http://none")
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"url is {url!r}: give the service's whole address, such as http://10.0.0.1:8700")
    return url


def checked_kept_sets(kept_sets):
    if kept_sets not in (None, "leave_out", "train"):
        raise ValueError(f'kept_sets is {kept_sets!r}: give "train" or "leave_out"')
    return kept_sets


def _places_of(spec):
    """Rollouts that a group may have."""
    most = (spec.get("branching") or {}).get("leaves") or (spec.get("allocation") or {}).get("most")
    return (most or spec["samples"]) + spec.get("over_provision", 0)


def _if_true(asked):
    """Returns the value of a query field that is sent only if it is set."""
    return "true" if asked else None


def _quoted(text):
    return urllib.parse.quote(str(text), safe="")


def _text(answer):
    with answer:
        return answer.read()


def _begun_lines(answer):
    lines = _whole_lines(answer)
    return answer, lines, next(lines, None)


def _whole_lines(answer):
    """Raises where the answer breaks off. `readline` takes a connection that ends between two chunks for the end of the answer."""
    begun = []
    while piece := answer.read1():
        end, *others = piece.split(b"\n")
        begun.append(end)
        for other in others:
            if line := b"".join(begun):
                yield line
            begun = [other]
    if any(begun) or answer.length:
        raise http.client.IncompleteRead(b"".join(begun), answer.length)


def _refusal(error):
    try:
        said = json.loads(error.read())["error"]
        return ServiceError(error.code, said["code"], said["message"], said["param"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(error.code, "engine_error", f"HTTP {error.code}", None)
