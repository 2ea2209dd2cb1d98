"""NeMo RL's data of rows that Alidade exported (alidade export --format nemo-rl).

    batch = [datum(row) for row in read("nemo.jsonl")]        # one DatumSpec a rollout, groups one after the other
    batch = data(rows, replay=True, pictures="media")         # with `routed_experts`, for policy.router_replay.enabled
    batch["teacher_reference_logprobs"] = teacher_logprobs(rows, S)   # after `alidade score`
"""

from ..media import tensors
from ..routing import each_array, for_each_token, length
from ..rows import read  # noqa: F401  (a user of this module needs no other)
from ..teachers import checked

TEACHER = "teacher_reference_logprobs"


def data(rows, processor=None, pictures=None, replay=False):
    """Returns the datum of each row. With `replay`, each message has the experts of its tokens."""
    rows = list(rows)
    made = [datum(row, processor, pictures) for row in rows]
    if replay:
        for row, one, array in zip(rows, made, each_array(rows, pictures)):
            _replay(one["message_log"], for_each_token(array.astype("int16"), length(row), fill=-1))
    return made


def _replay(log, array):
    """Gives each message the experts of its tokens. NeMo RL itself routes a token whose experts are -1."""
    import torch

    start = 0
    for message in log:
        end = start + len(message["token_ids"])
        message["routed_experts"] = torch.from_numpy(array[start:end].copy())
        start = end


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
    return {**{key: value for key, value in row.items() if key != "routing"}, "message_log": log}


def teacher_logprobs(rows, length):
    """The `[B, S]` tensor `teacher_reference_logprobs` of a batch, by which NeMo RL's asynchronous GRPO distils (after `alidade score`):
    entry `i` is about token `i` of the message log, 0.0 where nothing is trained and behind the end. `length`: S."""
    import torch

    rows = list(rows)
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
