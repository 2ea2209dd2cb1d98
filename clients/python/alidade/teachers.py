"""Reads a teacher's logprobs in rows of a live service with a teacher, and in exports of scored runs (docs/teachers.md)."""


def checked(rows, field):
    """The rows, as they come. Raises ValueError where only some of them have `field`, or a trained token has none: trainers would read
    a missing number as one."""
    has = None
    for at, row in enumerate(rows):
        values = row.get(field)
        if has is None:
            has = values is not None
        if has != (values is not None):
            raise ValueError(f"row {at}: some rows have {field} and others have not: score the whole run (alidade score)")
        missing = _missing(values)
        if missing:
            raise ValueError(f"row {at}: the teacher gave {missing} of its trained tokens no logprob (alidade show says why): leave the row out")
        yield row


def is_taught(line, field="teacher_logprobs"):
    """True if every trained token of a live rollout has a teacher's logprob. Also true if no teacher was asked: no row has `field`."""
    return not any(_missing(row.get(field)) for row in line["rows"] or ())


def _missing(values):
    return sum(one is None or isinstance(one, list) and None in one for one in values or ())
