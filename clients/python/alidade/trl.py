"""TRL's GRPOTrainer on an Alidade service: rollouts are sampled when the trainer asks for them (docs/train-online.md).

    run = Service().set("grpo-17", samples=8)
    rollouts = Rollouts(run, load)                 # load(trainer, version) brings the trainer's weights into the engine
    GRPOTrainer(rollout_func=rollouts.rollout_func, reward_funcs=rollouts.reward, callbacks=[rollouts.callback()],
                args=GRPOConfig(num_generations=8, ...), ...).train()

Tasks with pictures need `alidade.trl_pictures.grpo_trainer()` in place of GRPOTrainer.
"""

import contextlib
import json
import os

from .rows import as_floats
from .trl_pictures import hand_over

FILE = "alidade.json"
COLUMNS = ("prompt_ids", "completion_ids", "logprobs", "env_mask")


class Rollouts:
    """`run`: the set, whose `samples` are TRL's `num_generations`. `load(trainer, version)` runs while no call is sampled, in
    every process of the trainer. `task(prompt)`: the task of a prompt, by name or as a dict; by default the prompt is its name.
    """

    def __init__(self, run, load, task=lambda prompt: prompt):
        self._run, self._load, self._task = run, load, task
        self._cursor = None
        # Weights are loaded once a step; a step may ask for several batches.
        self._step, self._calls = None, 0

    def rollout_func(self, prompts, trainer):
        """What TRL asks for: a row for each prompt, in their order, of the step's own weights. A place whose rollout has no row is
        masked throughout. `alidade_reward` is None where nothing was measured; `alidade_policies` are the versions of the
        weights that were sampled with."""
        _refuse_what_differs(trainer, self._run)
        every, first = _of_all_processes(prompts, trainer.accelerator)
        groups = _groups_of(every, trainer.num_generations)
        self._begin(trainer)
        # The same in each life of the trainer and in each of its processes, so what is there already is not sampled again.
        keys = [f"{self._step}.{self._calls}/{at}" for at in range(len(groups))]
        self._calls += 1
        self._run.submit((key, self._task(group[0])) for key, group in zip(keys, groups))
        taken = self._take(keys)
        rows = [row for key in keys for row in _rows_of(taken[key], _pad(trainer))]
        rows = rows[first : first + len(prompts)]
        hand_over(trainer, [(row, row.pop("alidade_pictures")) for row in rows])
        names = (*COLUMNS, "alidade_reward", "alidade_policies", "alidade_rollout")
        return {name: [row[name] for row in rows] for name in names}

    @staticmethod
    def reward(completions, alidade_reward, **_):
        """None where nothing was measured: TRL keeps such a row out of the baseline."""
        return list(alidade_reward)

    def save(self, folder):
        """Into a checkpoint: the cursor behind the last rows that were given."""
        new = os.path.join(folder, FILE + ".new")
        with open(new, "w") as file:
            json.dump({"cursor": self._cursor}, file)
        os.replace(new, os.path.join(folder, FILE))

    def restore(self, folder):
        """From a checkpoint. One without our file is read from the set's beginning, and gives the same rows."""
        self._cursor = None
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, FILE)) as file:
            self._cursor = json.load(file)["cursor"]

    def callback(self):
        """For `callbacks`: puts the cursor into each checkpoint, and takes it from the one that the trainer goes on from."""
        from transformers import TrainerCallback

        rollouts = self

        class KeepCursor(TrainerCallback):
            def on_train_begin(self, args, state, control, **_):
                rollouts.restore(_checkpoint(args, state))

            def on_save(self, args, state, control, **_):
                if state.is_world_process_zero:
                    rollouts.save(_checkpoint(args, state))

        return KeepCursor()

    def _begin(self, trainer):
        """Loads the weights of this step, where they are not loaded yet, behind a gate that the first process holds."""
        step, accelerator = trainer.state.global_step, trainer.accelerator
        if step == self._step:
            return
        version = f"step-{step}"
        fence = contextlib.nullcontext()
        if accelerator.is_main_process:
            fence = self._run.service.weights(version=version, step=step)
        with fence:
            accelerator.wait_for_everyone()
            self._load(trainer, version)
            accelerator.wait_for_everyone()
        accelerator.wait_for_everyone()
        self._step, self._calls = step, 0

    def _take(self, keys):
        """The groups of these keys. Groups before them are of batches that the checkpoint has already."""
        missing, found = set(keys), {}
        for group in self._run.groups(after=self._cursor, format="trl-grpo", step=self._step):
            self._cursor = group.cursor
            if group.key in missing:
                missing.remove(group.key)
                found[group.key] = group
            if not missing:
                return found
        raise RuntimeError(f"the set {self._run.key} was drained without the groups {sorted(missing)}")


def _refuse_what_differs(trainer, run):
    if not trainer.model.training:
        raise ValueError("rollout_func gives rows for training only: evaluate with a set of your own, and leave out eval_strategy")
    if getattr(trainer, "temperature", 1.0) != 1.0:
        raise ValueError(f"temperature is {trainer.temperature}: rows are sampled at 1.0, so train at 1.0")
    samples, size = run.spec["samples"], trainer.num_generations
    if samples != size:
        raise ValueError(f"the set {run.key} has samples={samples} and TRL has num_generations={size}: make them equal")


def _groups_of(prompts, size):
    """TRL asks for each prompt `size` times in a row."""
    groups = [prompts[at : at + size] for at in range(0, len(prompts), size)]
    for at, group in enumerate(groups):
        if len(group) != size or any(prompt != group[0] for prompt in group):
            raise ValueError(f"group {at} of the batch is not one prompt {size} times (num_generations)")
    return groups


def _rows_of(group, pad):
    """A row for each place of the group, with the fields that TRL hands to reward functions."""
    rows = {row["rollout_id"]: row for row in group.rows}
    masked = {"prompt_ids": [pad], "completion_ids": [pad], "logprobs": [0.0], "env_mask": [0], "reward": None}
    for result in group.results:
        # The format's own placeholder row belongs to no rollout; a group that was left out whole has not even that.
        row = rows.get(result["rollout_id"]) or rows.get(None) or masked
        yield {
            **{name: row[name] for name in (*COLUMNS, "media") if name in row},
            "logprobs": as_floats(row["logprobs"]),
            "alidade_pictures": group.pictures,
            "alidade_reward": row["reward"],
            "alidade_policies": [policy["version"] for policy in result["policies"]],
            "alidade_rollout": result["rollout_id"],
        }


def _of_all_processes(prompts, accelerator):
    """The whole batch, and where this process's part of it begins: the places of a group are shared out among processes."""
    if accelerator.num_processes == 1:
        return list(prompts), 0
    from accelerate.utils import gather_object

    return gather_object(list(prompts)), accelerator.process_index * len(prompts)


def _pad(trainer):
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    return tokenizer.pad_token_id or 0


def _checkpoint(args, state):
    return os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
