"""Reads which tokens `top_p`, `top_k` and `min_p` kept at the places of a row's sampled tokens. Needs the standard library only.

    from alidade import read, support

    for row in read("rows.jsonl"):            # `alidade export --format flat --kept-sets train --out rows.jsonl`, the numbers in media/
        sets = support.sets(row, "media")     # for each token a list of ids with the token itself among them, or None
    for group in run.groups(kept_sets="train"):                   # the same rows from the service
        sets = [support.sets(row, group.pictures) for row in group.rows]

Where there is a set, the row's logprob is the one over that set, at the row's temperature. A trainer must compute its own logprob there
over the same ids: `logits[ids].log_softmax()`, and not over the vocabulary. The loss is wrong otherwise.
"""

import struct

from .stored import read_stored


class SupportError(ValueError):
    """The kept tokens of a row are not on record, or the bytes beside it are others than it names."""


def sets(row, files):
    """One entry for each token. `files`: the folder with the bytes, or the service's base64 by hash. Raises SupportError."""
    made = [None] * len(row["token_ids"])
    for part in row.get("support") or []:
        told = _sets(read_stored(part["sha256"], files, "file", SupportError), part)
        for at, ids in enumerate(told, part["start"]):
            if at >= len(made) or row["token_ids"][at] not in ids:
                raise SupportError(f"token {at} is not among the tokens that the file {part['sha256']} has for it")
            made[at] = ids
    return made


def _sets(data, part):
    numbers = struct.unpack(f"<{len(data) // 4}i", data) if len(data) % 4 == 0 else ()
    rows, first, end = part["rows"], part["row"], part["row"] + part["length"]
    counts = numbers[:rows]
    if len(counts) < rows or end > rows or min(counts) < 1 or rows + sum(counts) != len(numbers):
        raise SupportError(f"the file {part['sha256']} does not have the form that the row names")
    at = rows + sum(counts[:first])
    for count in counts[first:end]:
        yield list(numbers[at : at + count])
        at += count
