"""SkyRL on an Alidade service (docs/trainers-live.md): a generator for its trainer, in the order of its input.

    generator = AlidadeGenerator(Service().set("grpo-17", samples=8), step_wise=True)   # generator.step_wise_trajectories
    trainer = RayPPOTrainer(..., generator=generator)
    fence(trainer, service)                                # before trainer.train()
"""

import functools

from skyrl.train.generators.base import GeneratorInterface, GeneratorOutput

from .live import Live, fenced, is_measured, refuse_other_temperature
from .loaders.skyrl import pictured, routed

COLUMNS = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "stop_reasons", "rollout_logprobs", "is_last_step")


class AlidadeGenerator(GeneratorInterface):
    """`step_wise`: as the trainer's `generator.step_wise_trajectories`; a rollout of several rows needs it. `task(extras)`: the
    task of a prompt, by default the `task_id` of `alidade tasks export --for skyrl`. `pad`: a token for what is masked. `processor`:
    the model's own, for tasks with pictures; SkyRL cannot merge step-wise rows then. `replay`: also returns the experts of each token, for a
    trainer that replays them."""

    def __init__(self, run, step_wise, task=lambda extras: extras["task_id"], pad=0, processor=None, replay=False):
        self._live, self._step_wise, self._task, self._pad = Live(run, format="skyrl", replay=replay), step_wise, task, pad
        self._processor = processor

    async def generate(self, input_batch):
        batch, ids = input_batch["batch_metadata"], input_batch["trajectory_ids"]
        if batch.training_phase != "train":
            raise ValueError(f"training_phase is {batch.training_phase}: set trainer.eval_interval=-1 and evaluate with a set of your own")
        refuse_other_temperature((input_batch.get("sampling_params") or {}).get("temperature"))
        step = batch.global_step
        # Dynamic sampling may ask for a prompt again in the same step, for rollouts that it has not seen.
        keys = [self._live.key_of(f"{step}/{one.instance_id}", one.repetition_id) for one in ids]
        asked = [(key, one.repetition_id, self._task(extras)) for key, one, extras in zip(keys, ids, input_batch["env_extras"])]
        lines = await self._live.rollouts(asked)
        # A group in which one has no reward has no baseline: it is masked whole, as SkyRL's own agents mask it.
        without = {one.instance_id for one, line in zip(ids, lines) if not self._is_whole(line)}
        given = [(one, line.get("pictures"), row) for one, line in zip(ids, lines) for row in self._rows_of(line, one.instance_id in without)]
        rows = [(one, row) for one, _, row in given]
        output = GeneratorOutput(
            **{column: [row[column] for _, row in rows] for column in COLUMNS},
            trajectory_ids=[one for one, _ in rows],
            rollout_metrics={"generate/alidade_masked_groups": len(without)},
            **pictured([row for _, row in rows], [pictures for _, pictures, _ in given], self._processor),
        )
        if self._live.replay:
            files = {sha256: data for _, pictures, _ in given for sha256, data in (pictures or {}).items()}
            output.update(routed([row for _, row in rows], files, self._live.replay.form))
        if not self._step_wise:
            output["is_last_step"] = None
        return output

    def _is_whole(self, line):
        return is_measured(line) and (not self._live.replay or self._live.replay.takes(line))

    def _rows_of(self, line, is_masked):
        rows = line["rows"] or [self._blank()]
        if len(rows) > 1 and not self._step_wise:
            rollout = line["result"]["rollout_id"]
            raise ValueError(f"{rollout} has {len(rows)} rows: set generator.step_wise_trajectories=true and step_wise=True")
        for row in rows:
            nothing = {name: [0] * len(row["response_ids"]) for name in ("loss_masks", "rewards")}
            yield {**row, **nothing} if is_masked else row

    def _blank(self):
        one = [self._pad]
        return {"prompt_token_ids": one, "response_ids": one, "rewards": [0], "loss_masks": [0], "rollout_logprobs": [0.0], "stop_reasons": "error", "is_last_step": True}


def fence(trainer, service):
    """Each weight update of the trainer goes through the service's gate, under the name of the step that it samples for."""
    dispatch = trainer.dispatch
    save = dispatch.save_weights_for_sampler

    @functools.wraps(save)
    async def save_weights_for_sampler(*args, **kwargs):
        # Before the first step it is 0, and the weights after step n are those of n.
        with fenced(service, trainer.global_step):
            return await save(*args, **kwargs)

    dispatch.save_weights_for_sampler = save_weights_for_sampler
