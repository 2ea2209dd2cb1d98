"""AReaL: `alidade export --format areal` as the tensors that a workflow returns for each rollout.

    batch = concat_padded_tensors(trajectories("rows.jsonl"))    # areal.utils.data

    trajectories("rows.jsonl", processor=AutoProcessor.from_pretrained(MODEL))      # rows that show pictures

Nothing is shifted; the trainer rolls mask and logprobs itself.
"""

from ..media import beside, tensors as tensors_of
from ..rows import read


def trajectories(file, processor=None, pictures=None):
    """`pictures`: the folder of the pictures, by default `media/` beside the file. With a `processor`, rows of text get token kinds
    too."""
    rows = list(read(file))
    # All dicts of a batch need the same keys.
    versions = all(row["versions"] is not None for row in rows)
    return [{**tensors(row, versions), **multi_modal(row, pictures or beside(file), processor)} for row in rows]


def multi_modal(row, pictures, processor):
    """Returns the fields that AReaL's engines read for pictures: one dict a row, empty if it has none, and the kind of each token.
    Returns {} for a row of text if no `processor` is given."""
    import torch

    made = tensors_of(row, pictures, processor)
    if not made and processor is None:
        return {}
    kinds = made.pop("mm_token_type_ids", None)
    kinds = torch.zeros(len(row["input_ids"]), dtype=torch.long) if kinds is None else kinds
    return {"mm_token_type_ids": kinds[None], "multi_modal_input": [made]}


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
