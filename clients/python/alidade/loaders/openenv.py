"""OpenEnv: `alidade export --format openenv` as its validated `TrainingTrace`s.

    for row, trace in training_traces("rows.jsonl"):
        row["reward"], row["group_id"], trace.turns

The reward is None where none was measured.
"""

from ..rows import read


def training_traces(file):
    from openenv.core.harness.training import TrainingTrace

    for row in read(file):
        yield row, TrainingTrace.model_validate(row["training_trace"])
