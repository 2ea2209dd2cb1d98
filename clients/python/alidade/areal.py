"""AReaL on an Alidade service (docs/trainers-live.md): a workflow whose episode is a whole group.

    workflow = AlidadeWorkflow(Service().set("grpo-17", samples=8))          # gconfig.n_samples=1: the workflow makes the group
    batch = rollout.prepare_batch(dataloader, workflow=workflow)
    with fenced(service, step=version): actor.update_weights(meta); rollout.set_version(version)
"""

import logging
import os

from areal.api.workflow_api import RolloutWorkflow
from areal.infra import workflow_context
from areal.utils import stats_tracker
from areal.utils.data import concat_padded_tensors

from .live import Live, fenced, is_measured, why_unmeasured  # noqa: F401  (fenced is for the caller)
from .loaders.areal import multi_modal, tensors


class AlidadeWorkflow(RolloutWorkflow):
    """`task(data)`: the task of a row of the data set, by default its `task_id`. AReaL takes one row a rollout. If a rollout has several
    rows, it gets the row with the most trained tokens. `processor`: the model's own, for a model that reads pictures."""

    def __init__(self, run, task=lambda data: data["task_id"], processor=None):
        self._live, self._task, self._processor = Live(run), task, processor
        self._said = set()

    async def arun_episode(self, engine, data):
        """The group's rows as a batch of its size. None, by which AReaL rejects it, if one of its rollouts has no reward or no row: the
        baseline of the others would be another one. AReaL's own workflows train each rollout, so it has no form for one without a row."""
        if workflow_context.get().is_eval:
            raise ValueError("AReaL evaluates with this workflow, whose set is for training: leave out its evaluation, and make a set with purpose=\"eval\"")
        task = self._task(data)
        name = task if isinstance(task, str) else task["task_id"]
        key = self._live.fresh_key(f"{engine.get_version()}/{name}{_of_rank()}")
        lines = await self._live.rollouts((key, index, task) for index in range(self._live.run.spec["samples"]))
        if self._rejects(lines):
            return None
        return concat_padded_tensors([trajectory_of(line, self._processor) for line in lines])

    def _rejects(self, lines):
        """Whether the group is rejected. AReaL counts why, and the log says each reason once: AReaL asks for other groups without an end."""
        without = [line for line in lines if not is_measured(line)]
        is_untrained = any(line["result"]["reward"] is not None for line in without)
        counts = {"alidade_no_reward": any(line["result"]["reward"] is None for line in without), "alidade_nothing_trained": is_untrained}
        stats_tracker.get(workflow_context.stat_scope()).scalar(**counts)
        for line in without:
            why = why_unmeasured(line)
            if why not in self._said:
                self._said.add(why)
                logging.getLogger("alidade").warning("%s: %s, so AReaL gets nothing of its group (said once)", line["result"]["rollout_id"], why)
        return bool(without)


def _of_rank():
    """Returns what tells the keys of the trainer's processes apart. Its sampler may give two of them the same task, and each counts its own keys."""
    rank = os.environ.get("RANK", "0")
    return "" if rank == "0" else f"/rank-{rank}"


def trajectory_of(line, processor=None):
    """Returns the tensors of a rollout. Refuses one with pictures if there is no `processor`: its pads would be trained as text."""
    row = row_of(line)
    return {**tensors(row, versions=True), **multi_modal(row, line.get("pictures"), processor)}


def row_of(line):
    """The longest of the rollout's flat rows, under AReaL's names. A version is the policy step that sampled the token."""
    row = max(line["rows"], key=lambda each: each["trained_tokens"])
    versions = [-1] * len(row["token_ids"])
    for segment in row["segments"]:
        if segment["trainable"]:
            if segment["policy_step"] is None:
                raise ValueError(f"{row['rollout_id']}: the step of its policy is unknown; name the weights with fenced(service, step)")
            versions[segment["start"] : segment["end"]] = [segment["policy_step"]] * (segment["end"] - segment["start"])
    return {
        "input_ids": row["token_ids"],
        "loss_mask": row["loss_mask"],
        # Where the mask is 0 nothing reads it.
        "logprobs": [logprob if mask else 0.0 for logprob, mask in zip(row["logprobs"], row["loss_mask"])],
        "versions": versions,
        "rewards": row["reward"],
        **{name: row[name] for name in ("media",) if name in row},
    }
