"""NeMo RL's data of rows that Alidade exported (alidade export --format nemo-rl).

    batch = [datum(row) for row in read("nemo.jsonl")]        # one DatumSpec a rollout, groups one after the other
    batch["teacher_reference_logprobs"] = teacher_logprobs(rows, S)   # after `alidade score`
"""

from ..media import tensors
from ..rows import read  # noqa: F401  (a user of this module needs no other)
from ..teachers import checked

TEACHER = "teacher_reference_logprobs"


def datum(row, processor=None, pictures=None):
    """The row with tensors in its message log; its keys are those of `DatumSpec`. Pictures of a message become packed tensors:
    that needs the model's `processor` and `pictures`, the folder of the files (`media/` beside the rows)."""
    import torch

    dtypes = {"token_ids": torch.int64, "generation_logprobs": torch.float32}
    log = [
        {
            **{key: torch.tensor(value, dtype=dtypes[key]) if key in dtypes else value for key, value in message.items() if key != "media"},
            **_packed(message, processor, pictures),
        }
        for message in row["message_log"]
    ]
    return {**row, "message_log": log}


def teacher_logprobs(rows, length):
    """The `[B, S]` tensor `teacher_reference_logprobs` of a batch, by which NeMo RL's asynchronous GRPO distils (after `alidade score`):
    entry `i` is about token `i` of the message log, 0.0 where nothing is trained and behind the end. `length`: S."""
    import torch

    taught = [row["teacher_reference_logprobs"] for row in checked(rows, TEACHER) if TEACHER in row]
    if len(taught) < len(rows):
        raise ValueError("no teacher scored these rows: alidade score")
    return torch.tensor([values + [0.0] * (length - len(values)) for values in taught], dtype=torch.float32)


def _packed(message, processor, pictures):
    made = tensors(message, pictures, processor)
    if not made:
        return {}
    from nemo_rl.data.multimodal_utils import PackedTensor

    return {key: PackedTensor(made[key], dim_to_pack=0) for key in ("pixel_values", "image_grid_thw")}
