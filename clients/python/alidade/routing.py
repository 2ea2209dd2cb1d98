"""Reads which experts the tokens of a row took, for trainers that replay them. Needs the standard library only.

    from alidade import read, routing

    for row in read("rows.jsonl"):               # `alidade export --format flat --out rows.jsonl`, the numbers in media/ beside it
        experts = routing.experts(row, "media")  # a memoryview (tokens, layers, experts a token), or None
        numpy.asarray(experts)

Entry i is about token i of `row["token_ids"]`. A last sampled token may have no entry, because the engine computed nothing on it.
Returns None if the numbers of another token are not on record.

The loaders of verl, SkyRL, prime-rl, slime, miles and NeMo RL make the trainer's own field with `replay=True`.
"""

from .media import token_ids
from .stored import read_stored

_codes = {"uint8": "B", "uint16": "H", "int32": "i"}  # little-endian, as machines with GPUs are


class RoutingError(ValueError):
    """The bytes beside the rows are not those that the row names."""


def arrays(rows, files):
    """One array of numpy (uint8 or int16) for each row, as `experts` returns it, all with the same layers and experts a token. A row
    that trains nothing gets one entry of any experts if its own are not on record. Raises RoutingError if a row that trains lacks those of
    a token."""
    import numpy

    told = [experts(row, files) for row in rows]
    forms = {one.shape[1:] for one in told if one is not None}
    for at, (row, one) in enumerate(zip(rows, told)):
        if one is None and trains(row):
            raise RoutingError(f"row {at} trains tokens whose experts are not on record (alidade fidelity says why): leave the row out, or replay")
    if len(forms) != 1:
        raise RoutingError(f"the rows have experts of {len(forms)} forms (layers, experts a token), and a batch has one: {sorted(forms)}")
    [form] = forms
    blank = numpy.full((1, *form), range(form[1]), "uint8")
    made = [blank if one is None else numpy.asarray(one) for one in told]
    if any(one.max() > 2**15 - 1 for one in made):
        raise RoutingError("an expert has a number above 32767, which the trainers' int16 does not hold")
    kind = "uint8" if all(one.dtype == numpy.uint8 for one in made) else "int16"
    return [one.astype(kind) for one in made]


def for_each_token(array, count, fill=0):
    """The array with `count` entries: cut, or with `fill` behind its end."""
    import numpy

    rest = numpy.full((max(0, count - len(array)), *array.shape[1:]), fill, array.dtype)
    return numpy.concatenate([array[:count], rest])


def is_routed(row):
    """Whether the experts of each token that needs them are on record, by the row alone. A row that trains nothing needs none."""
    return not trains(row) or _end(row.get("routing") or []) >= max(1, length(row) - 1)


def is_routed_line(line):
    """The same for all rows of a live rollout, of which one has experts: a batch needs their form."""
    return all(map(is_routed, line["rows"])) and any(row.get("routing") for row in line["rows"])


def length(row):
    """The number of tokens of a row of any format."""
    return sum(len(one["token_ids"]) for one in row["message_log"]) if "message_log" in row else len(token_ids(row))


def trains(row):
    """Whether the row of any format trains a token."""
    if "loss_multiplier" in row:
        return row["loss_multiplier"] > 0
    return any(any(row[name]) for name in ("loss_mask", "response_mask", "loss_masks", "mask") if name in row)


def experts(row, files):
    """`files`: the folder with the bytes, or the service's base64 by hash. Raises RoutingError for bytes that are damaged."""
    parts = row.get("routing") or []
    end = _end(parts)
    if not parts or end < length(row) - 1:
        return None
    data = b"".join(_rows(part, files) for part in parts)
    forms = {(part["dtype"], part["layers"], part["top_k"]) for part in parts}
    if len(forms) > 1:
        raise RoutingError(f"the engines that sampled the row told experts in different forms: {sorted(forms)}")
    dtype, layers, top_k = forms.pop()
    return memoryview(data).cast("B").cast(_codes[dtype], shape=[end, layers, top_k])


def _end(parts):
    """How many first tokens have their experts; -1 if a part is missing."""
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
