"""tinker and tinker-cookbook: `alidade export --format tinker` as `Datum`s for `forward_backward`.

    for datum in datums("rows.jsonl"): ...                       # advantages: tinker-cookbook's own, centred in the group

A rollout whose context forked has several datums and counts once in its group.
"""

from ..rows import read


def datums(file):
    rows = list(read(file))
    advantages = advantages_of(rows)
    return [datum(row, advantages[row["trajectory_id"]]) for row in rows]


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
