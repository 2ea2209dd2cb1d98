"""AReaL: `alidade export --format areal` as the tensors that a workflow returns for each rollout.

    batch = concat_padded_tensors(trajectories("rows.jsonl"))    # areal.utils.data

Nothing is shifted; the trainer rolls mask and logprobs itself.
"""

from ..rows import read


def trajectories(file):
    rows = list(read(file))
    # All dicts of a batch need the same keys.
    versions = all(row["versions"] is not None for row in rows)
    return [tensors(row, versions) for row in rows]


def tensors(row, versions):
    import torch

    columns = {
        "input_ids": torch.tensor([row["input_ids"]]),
        "loss_mask": torch.tensor([row["loss_mask"]]),
        "logprobs": torch.tensor([row["logprobs"]], dtype=torch.float32),
        "attention_mask": torch.ones(1, len(row["input_ids"]), dtype=torch.bool),
        "rewards": torch.tensor([float(row["rewards"])]),
    }
    return {**columns, "versions": torch.tensor([row["versions"]])} if versions else columns
