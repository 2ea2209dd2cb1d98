"""tinker and tinker-cookbook: `alidade export --format tinker` as `Datum`s for `forward_backward`.

    for datum in datums("rows.jsonl"): ...                       # advantages: tinker-cookbook's own, centred in the group

    data = distilled("rows.jsonl", kl_penalty_coef=1.0)          # after `alidade score`: with the cookbook's penalty for the distance

Pictures become image chunks: `pictures` is their folder, by default `media/` beside the file. tinker makes their pixels itself, and
refuses a picture that has other tokens than the engine's.

A rollout whose context forked has several datums and counts once in its group.
"""

from ..media import MediaError, beside, image_type, plain, read_bytes, refuse_misplaced
from ..rows import read
from ..teachers import checked


def datums(file, pictures=None):
    rows = list(read(file))
    advantages = advantages_of(rows)
    return [datum(row, advantages[row["trajectory_id"]], pictures or beside(file)) for row in rows]


def distilled(file, kl_penalty_coef, kl_discount_factor=0.0, pictures=None):
    """The datums, with what tinker-cookbook's on-policy distillation adds to their advantages: its own code, where the record answers
    in the place of the teacher's sampling client."""
    import asyncio

    from tinker_cookbook.distillation.train_on_policy import incorporate_kl_penalty

    rows, data = list(checked(read(file), "teacher_logprobs")), datums(file, pictures)
    if not all("teacher_logprobs" in row for row in rows):
        raise ValueError(f"{file}: no teacher scored these rows: alidade score")
    teachers = [RecordedTeacher(row, one.model_input) for row, one in zip(rows, data)]
    asyncio.run(incorporate_kl_penalty(data, teachers, [0] * len(rows), kl_penalty_coef, kl_discount_factor))
    return data


class RecordedTeacher:
    """Answers `compute_logprobs` as a sampling client does, but only for the tokens and pictures of one row."""

    def __init__(self, row, model_input):
        self._tokens = _flat(model_input.append_int(row["loss_fn_inputs"]["target_tokens"][-1]))
        self._logprobs = [None, *row["teacher_logprobs"]]

    def compute_logprobs(self, sequence):
        if _flat(sequence) != self._tokens:
            raise ValueError("a teacher was asked about other tokens than it had scored")
        return self

    async def coroutine(self):
        return self._logprobs


def advantages_of(rows):
    """Trajectory id -> its advantage, by what the cookbook makes of the rewards of its group."""
    import tinker
    from tinker_cookbook.rl.data_processing import compute_advantages
    from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup

    groups = {}
    for row in rows:
        groups.setdefault(row["group_id"], {})[row["trajectory_id"]] = float(row["reward"])
    bare = Trajectory(transitions=[], final_ob=tinker.ModelInput.empty())
    out = {}
    for rewards in groups.values():
        group = TrajectoryGroup([bare] * len(rewards), list(rewards.values()), [{}] * len(rewards))
        out.update(zip(rewards, compute_advantages([group])[0].tolist()))
    return out


def datum(row, advantage, pictures=None):
    import tinker
    import torch

    inputs = row["loss_fn_inputs"]
    floats = {name: torch.tensor(inputs[name], dtype=torch.float32) for name in ("logprobs", "mask")}
    return tinker.Datum(
        model_input=tinker.ModelInput(chunks=_chunks(row, pictures)),
        loss_fn_inputs={
            "target_tokens": torch.tensor(_targets(row)),
            **floats,
            "advantages": floats["mask"] * advantage,
        },
    )


def _chunks(row, pictures):
    """Returns the text and the pictures as chunks, in their order. A row of text is one chunk."""
    import tinker

    ids, media, chunks, end = row["model_input"], row.get("media") or [], [], 0
    if media:
        refuse_misplaced(ids, media)
    for picture, data in zip(media, map(plain, read_bytes(row, pictures))):
        kind = (image_type(data) or "").removeprefix("image/")
        if kind not in ("png", "jpeg"):
            raise MediaError(f"the picture {picture['sha256']} is no PNG or JPEG, and tinker takes no other")
        if picture["start"] > end:
            chunks.append(tinker.EncodedTextChunk(tokens=ids[end : picture["start"]]))
        chunks.append(tinker.types.ImageChunk(data=data, format=kind, expected_tokens=picture["length"]))
        end = picture["start"] + picture["length"]
    return [*chunks, tinker.EncodedTextChunk(tokens=ids[end:])] if end < len(ids) or not chunks else chunks


def _targets(row):
    """Returns the targets: 0 for a place of a picture, as the cookbook does. Target `i` is token `i + 1`."""
    targets = list(row["loss_fn_inputs"]["target_tokens"])
    for picture in row.get("media") or []:
        first = max(0, picture["start"] - 1)
        last = picture["start"] + picture["length"] - 1
        targets[first:last] = [0] * (last - first)
    return targets


def _flat(model_input):
    """Returns each token of the text, and each picture."""
    return [one for chunk in model_input.chunks for one in getattr(chunk, "tokens", [chunk])]
