"""agent-lightning: `alidade export --format agent-lightning` as the rollouts that its adapter takes.

    batch, metrics = RolloutAdapter(...).get_train_data_batch(completed_rollouts("rows.jsonl"))

Read the file again for another batch: at its `trajectory` level the adapter changes the triplets that it is given.
"""

from ..rows import read


def completed_rollouts(file):
    from agentlightning.verl.agl_rollout_manager import CompletedRollout

    return [CompletedRollout.model_validate(row) for row in read(file)]
