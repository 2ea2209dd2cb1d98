"""NeMo RL's data of rows that Alidade exported (alidade export --format nemo-rl).

    batch = [datum(row) for row in read("nemo.jsonl")]        # one DatumSpec a rollout, groups one after the other
"""

from ..rows import read  # noqa: F401  (a user of this module needs no other)


def datum(row):
    """The row with tensors in its message log; its keys are those of `DatumSpec`."""
    import torch

    dtypes = {"token_ids": torch.int64, "generation_logprobs": torch.float32}
    log = [{key: torch.tensor(value, dtype=dtypes[key]) if key in dtypes else value for key, value in message.items()} for message in row["message_log"]]
    return {**row, "message_log": log}
