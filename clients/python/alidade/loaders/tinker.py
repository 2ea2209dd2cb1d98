"""tinker and tinker-cookbook: `alidade export --format tinker` as `Datum`s for `forward_backward`.

    for datum in datums("rows.jsonl"): ...                       # advantages: tinker-cookbook's own, centred in the group

    data = distilled("rows.jsonl", kl_penalty_coef=1.0)          # after `alidade score`: with the cookbook's penalty for the distance

A rollout whose context forked has several datums and counts once in its group.
"""

from ..rows import read
from ..teachers import checked


def datums(file):
    rows = list(read(file))
    advantages = advantages_of(rows)
    return [datum(row, advantages[row["trajectory_id"]]) for row in rows]


def distilled(file, kl_penalty_coef, kl_discount_factor=0.0):
    """The datums, with what tinker-cookbook's on-policy distillation adds to their advantages: its own code, where the record answers
    in the place of the teacher's sampling client."""
    import asyncio

    from tinker_cookbook.distillation.train_on_policy import incorporate_kl_penalty

    rows, data = list(checked(read(file), "teacher_logprobs")), datums(file)
    if not all("teacher_logprobs" in row for row in rows):
        raise ValueError(f"{file}: no teacher scored these rows: alidade score")
    asyncio.run(incorporate_kl_penalty(data, [RecordedTeacher(row) for row in rows], [0] * len(rows), kl_penalty_coef, kl_discount_factor))
    return data


class RecordedTeacher:
    """Answers `compute_logprobs` as a sampling client would, for the tokens of one row alone."""

    def __init__(self, row):
        self._tokens = row["model_input"] + row["loss_fn_inputs"]["target_tokens"][-1:]
        self._logprobs = [None, *row["teacher_logprobs"]]

    def compute_logprobs(self, sequence):
        if sequence.to_ints() != self._tokens:
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


def datum(row, advantage):
    import tinker
    import torch

    inputs = row["loss_fn_inputs"]
    floats = {name: torch.tensor(inputs[name], dtype=torch.float32) for name in ("logprobs", "mask")}
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints(row["model_input"]),
        loss_fn_inputs={
            "target_tokens": torch.tensor(inputs["target_tokens"]),
            **floats,
            "advantages": floats["mask"] * advantage,
        },
    )
