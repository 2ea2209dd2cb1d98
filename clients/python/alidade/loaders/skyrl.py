"""SkyRL: `alidade export --format skyrl` as the `GeneratorOutput` that a generator returns.

    output = generator_output("rows.jsonl", step_wise=True)     # what `GeneratorInterface.generate` gives the trainer

A rollout whose context forked has several rows: they need `step_wise_trajectories`, which counts them as one. Rows with pictures
need the model's `processor`; SkyRL cannot merge step-wise rows then (`generator.merge_stepwise_output=false`).

With `replay=True` it has `rollout_expert_indices`, for `trainer.policy.megatron_config.moe_enable_routing_replay`.
"""

from ..media import beside, tensors
from ..routing import arrays, trains
from ..rows import read

COLUMNS = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_logprobs")


def generator_output(file, step_wise=False, processor=None, pictures=None, replay=False):
    from skyrl.train.generators.base import GeneratorOutput, TrajectoryID

    rows = list(read(file))
    if not step_wise and not all(row["is_last_step"] for row in rows):
        raise ValueError(f"{file} has rollouts of several rows: train with step_wise=True, or export with --select main-agent")
    return GeneratorOutput(
        **{column: [row[column] for row in rows] for column in COLUMNS},
        rollout_metrics=None,
        trajectory_ids=[TrajectoryID(**row["trajectory_ids"]) for row in rows],
        is_last_step=[row["is_last_step"] for row in rows] if step_wise else None,
        **(routed(rows, pictures or beside(file)) if replay else {}),
        **pictured(rows, [pictures or beside(file)] * len(rows), processor),
    )


def routed(rows, files, form=None):
    """Returns the column of experts: one array for each row, from the first token of its prompt. Returns {} if no row trains or names
    experts, and `form` is not given. SkyRL wants the column in each batch or in none."""
    if not form and not any(trains(row) or row.get("routing") for row in rows):
        return {}
    return {"rollout_expert_indices": arrays(rows, files, form)}


def pictured(rows, pictures, processor):
    """The columns of pictures: one tensor for each row, empty for a row without pictures. {} if no row has any."""
    made = [tensors(row, where, processor) for row, where in zip(rows, pictures)]
    shown = next((one for one in made if one), None)
    if shown is None:
        return {}
    return {key: [one[key] if one else shown[key][:0] for one in made] for key in ("pixel_values", "image_grid_thw")}
