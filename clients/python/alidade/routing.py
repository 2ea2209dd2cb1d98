"""Reads which experts the tokens of a row took, for trainers that replay them. Needs the standard library only.

    from alidade import read, routing

    for row in read("rows.jsonl"):               # `alidade export --format flat --out rows.jsonl`, the numbers in media/ beside it
        experts = routing.experts(row, "media")  # a memoryview (tokens, layers, experts a token), or None
        numpy.asarray(experts)

Entry i is about token i of `row["token_ids"]`. A last sampled token may have no entry, because the engine computed nothing on it.
Returns None if the numbers of another token are not on record.
"""

from .stored import read_stored

_codes = {"uint8": "B", "uint16": "H", "int32": "i"}  # little-endian, as machines with GPUs are


class RoutingError(ValueError):
    """The bytes beside the rows are not those that the row names."""


def experts(row, files):
    """`files`: the folder with the bytes, or the service's base64 by hash. Raises RoutingError for bytes that are damaged."""
    parts = row.get("routing") or []
    end, data = 0, b""
    for part in parts:
        if part["start"] != end:
            return None
        data += _rows(part, files)
        end += part["length"]
    if not parts or end < len(row["token_ids"]) - 1:
        return None
    forms = {(part["dtype"], part["layers"], part["top_k"]) for part in parts}
    if len(forms) > 1:
        raise RoutingError(f"the engines that sampled the row told experts in different forms: {sorted(forms)}")
    dtype, layers, top_k = forms.pop()
    return memoryview(data).cast("B").cast(_codes[dtype], shape=[end, layers, top_k])


def _rows(part, files):
    data = read_stored(part["sha256"], files, "file", RoutingError)
    size = {"uint8": 1, "uint16": 2, "int32": 4}[part["dtype"]] * part["layers"] * part["top_k"]
    told = data[part["row"] * size : (part["row"] + part["length"]) * size]
    if len(told) != part["length"] * size:
        raise RoutingError(f"the file {part['sha256']} has fewer rows than the row names")
    return told
