"""Reads which experts the tokens of a row took, for trainers that replay them. Needs the standard library only.

    from alidade import read, routing

    for row in read("rows.jsonl"):               # `alidade export --format flat --out rows.jsonl`, the numbers in media/ beside it
        experts = routing.experts(row, "media")  # a memoryview (tokens, layers, experts a token), or None
        numpy.asarray(experts)

Entry i is about token i of `row["token_ids"]`. A last sampled token may have no entry, because the engine computed nothing on it.
Returns None if the numbers of another token are not on record.

The loaders of verl, SkyRL, prime-rl, slime, miles and NeMo RL make the trainer's own field with `replay=True`.
"""

import logging

from .media import token_ids
from .stored import read_stored

_codes = {"uint8": "B", "uint16": "H", "int32": "i"}  # little-endian, as machines with GPUs are
# After a rollout with experts, so many rollouts in a row may have none: a preempted call has none.
MOST_WITHOUT = 32


class RoutingError(ValueError):
    """The experts of a row are not on record, or the bytes beside it do not have the hash that it names."""


class Replay:
    """The state of a hook whose trainer replays experts. `form`: (layers, experts a token) of the last rollout with experts. A rollout
    that trains nothing gets dummy experts of this form."""

    def __init__(self):
        self.form, self._without = None, 0

    def takes(self, line):
        """True if the experts of all trained rows of a measured rollout are on record. Raises RoutingError if rollouts have none at all,
        because the trainer would ask for other rollouts without end."""
        rows = line["rows"]
        parts = [part for row in rows for part in row.get("routing") or []]
        if parts:
            self.form = _form(parts[-1])
        trained = [row for row in rows if trains(row)]
        if any(row.get("routing") for row in trained):
            self._without = 0
        elif trained:
            self._without += 1
            if self.form is None or self._without > MOST_WITHOUT:
                raise RoutingError(
                    f"no token of the rollout {line['result'].get('rollout_id')} has experts on record, and the trainer replays them: switch replay"
                    " off, or sample with an engine that tells experts (docs/engines.md, Models with experts)"
                )
        return all(map(is_routed, rows))

    def gives(self, line):
        """As `takes`, for a hook that gives each rollout by itself. Also False if the rollout trains nothing and no form is known yet."""
        if not self.takes(line):
            return False
        if self.form is None:
            told = line["result"].get("rollout_id")
            logging.getLogger("alidade").warning("the rollout %s is left out: it trains nothing, and no rollout before it had experts", told)
        return self.form is not None


def arrays(rows, files, form=None):
    """Returns one numpy array (uint8 or int16) for each row, like `experts`, all with the same layers and experts a token. A row that
    trains nothing gets one entry of dummy experts if its own are not on record. `form`: (layers, experts a token), used if no row names
    experts. Raises RoutingError if a trained row lacks the experts of a token."""
    return list(each_array(rows, files, form))


def each_array(rows, files, form=None):
    """As `arrays`, but reads a row only when it is asked for, so the experts of a file need not fit into memory. `rows`: a list."""
    for at, row in enumerate(rows):
        if not is_routed(row):
            raise RoutingError(f"row {at} trains tokens whose experts are not on record (alidade fidelity says why): leave the row out, or replay")
    whole = [part for row in rows if _is_whole(row) for part in row["routing"]]
    forms = {_form(part) for part in whole or [part for row in rows for part in row.get("routing") or []]} or ({form} if form else set())
    if len(forms) != 1:
        raise RoutingError(f"the rows have experts of {len(forms)} forms (layers, experts a token), and a batch has one: {sorted(forms)}")
    [form] = forms
    kind = "uint8" if all(part["dtype"] == "uint8" for part in whole) else "int16"
    return (_array(experts(row, files), form, kind) for row in rows)


def _array(told, form, kind):
    import numpy

    made = numpy.full((1, *form), range(form[1]), "uint8") if told is None else numpy.asarray(told)
    if made.max() > 2**15 - 1:
        raise RoutingError("an expert has a number above 32767, which the trainers' int16 does not hold")
    return made.astype(kind)


def for_each_token(array, count, fill=0):
    """Returns the array with `count` entries: cut, or extended by `fill`."""
    import numpy

    rest = numpy.full((max(0, count - len(array)), *array.shape[1:]), fill, array.dtype)
    return numpy.concatenate([array[:count], rest])


def is_routed(row):
    """True if the row names experts for each token that needs them. Reads no bytes. A row that trains nothing needs none."""
    return not trains(row) or _is_whole(row)


def length(row):
    """Returns the number of tokens of a row of any format."""
    return sum(len(one["token_ids"]) for one in row["message_log"]) if "message_log" in row else len(token_ids(row))


def trains(row):
    """True if a row of any format trains a token."""
    if "loss_multiplier" in row:
        return row["loss_multiplier"] > 0
    return any(any(row[name]) for name in ("loss_mask", "response_mask", "loss_masks", "mask") if name in row)


def experts(row, files):
    """`files`: the folder with the bytes, or the service's base64 by hash. Raises RoutingError for bytes that are damaged."""
    if not _is_whole(row):
        return None
    parts = row["routing"]
    data = b"".join(_rows(part, files) for part in parts)
    forms = {(part["dtype"], part["layers"], part["top_k"]) for part in parts}
    if len(forms) > 1:
        raise RoutingError(f"the engines that sampled the row told experts in different forms: {sorted(forms)}")
    dtype, layers, top_k = forms.pop()
    return memoryview(data).cast("B").cast(_codes[dtype], shape=[_end(parts), layers, top_k])


def _is_whole(row):
    parts = row.get("routing") or []
    return _end(parts) >= max(1, length(row) - 1)


def _form(part):
    return part["layers"], part["top_k"]


def _end(parts):
    """Counts the first tokens that have experts. Returns -1 if a part between them is missing."""
    end = 0
    for part in parts:
        if part["start"] != end:
            return -1
        end += part["length"]
    return end


def _rows(part, files):
    data = read_stored(part["sha256"], files, "file", RoutingError)
    size = {"uint8": 1, "uint16": 2, "int32": 4}[part["dtype"]] * part["layers"] * part["top_k"]
    told = data[part["row"] * size : (part["row"] + part["length"]) * size]
    if len(told) != part["length"] * size:
        raise RoutingError(f"the file {part['sha256']} has fewer rows than the row names")
    return told
