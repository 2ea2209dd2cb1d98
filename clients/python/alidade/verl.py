"""verl's V1 trainers on an Alidade service (docs/trainers-live.md): an agent loop that asks for one member of a group.

    # agent_loop.yaml, for actor_rollout_ref.rollout.agent.agent_loop_config_path
    - name: alidade
      _target_: alidade.verl.AlidadeLoop
      set: grpo-17
      samples: 8                        # actor_rollout_ref.rollout.n
      service: {url: http://10.0.0.1:8700}

    fence(trainer, Service(...))      # before trainer.fit(...)
"""

import functools
import json
import math

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

import torch
from omegaconf import OmegaConf  # verl's own

from . import media
from .live import Live, fenced, is_measured, refuse_other_temperature
from .loaders.verl import replayed
from .service import Service
from .teachers import is_taught

# Attributes of verl's trainers.
MANAGERS = ("checkpoint_manager", "standalone_checkpoint_manager")


class AlidadeLoop(AgentLoopBase):
    """verl makes one for each rollout; those of a process share one reader of results."""

    def __init__(self, *args, set, samples, service=None, spec=None, **kwargs):
        super().__init__(*args, **kwargs)
        replay = bool(self.rollout_config.get("enable_rollout_routing_replay"))
        self._live = _live_of(set, samples, replay, *(json.dumps(OmegaConf.to_container(OmegaConf.create(each or {}))) for each in (service, spec)))

    async def run(self, sampling_params, **row):
        """Returns one output for each row of the rollout. Returns none if it has no rows or reward, or if the service's teacher did not
        score a trained token. Then verl's baseline leaves it out. Also returns none if verl replays experts, and a token has none on record.
        Raises RoutingError if no token has any."""
        if "session_id" not in row:
            raise ValueError("session_id is missing: a classic trainer says no place in the group; set trainer.use_v1=True")
        refuse_other_temperature(sampling_params.get("temperature"))
        line = await self._live.rollout(row["uid"], int(row["session_id"]), task_of(row))
        replay = self._live.replay
        if not (is_measured(line) and is_taught(line)) or (replay and not replay.gives(line)):
            return []
        routed = replayed(line["rows"], line.get("pictures"), replay.form) if replay else [None] * len(line["rows"])
        return [output_of(each, line.get("pictures"), self.processor, experts) for each, experts in zip(line["rows"], routed)]


def task_of(row):
    """The task of a row of `alidade tasks export --for verl`: its name."""
    extra = row.get("extra_info") or {}
    if "task_id" not in extra:
        raise ValueError("extra_info.task_id is missing: it names the task; make the rows with alidade tasks export --for verl")
    return extra["task_id"]


def output_of(row, pictures=None, processor=None, experts=None):
    """A row of the format `verl` as verl's own output. Compares the pictures with the row, then verl makes their tensors itself."""
    steps = {name: row[name] for name in ("min_global_steps", "max_global_steps")}
    if None in steps.values():
        raise ValueError(f"{row['key']}: the step of its policy is unknown; name the weights with fence(trainer, service)")
    return AgentLoopOutput(
        prompt_ids=row["prompts"],
        response_ids=row["responses"],
        response_mask=row["response_mask"],
        response_logprobs=row["rollout_log_probs"],
        reward_score=row["reward_score"],
        num_turns=row["num_turns"],
        **({} if experts is None else {"routed_experts": experts}),
        **media.fields(row, pictures, processor, "verl"),
        metrics=AgentLoopMetrics(),
        extra_fields={**steps, **_taught(row), "reward_extra_info": _components(row), "alidade_rollout": row["rollout_id"]},
    )


def _components(row):
    """Returns NaN for a component that was not measured. verl filters groups by a component as a number, and None ends its trainer. A group
    with a NaN stays, because it is equal to nothing."""
    return {name: math.nan if value is None else value for name, value in row["reward_extra_info"].items()}


def _taught(row):
    """Returns the teacher's fields as verl's agent loop worker does for its own teacher."""
    if "teacher_logprobs" not in row:
        return {}
    return {
        "teacher_ids": torch.tensor(row["teacher_ids"], dtype=torch.int32),
        "teacher_logprobs": torch.tensor(row["teacher_logprobs"], dtype=torch.float32),
    }


def fence(trainer, service):
    """Each weight update of verl's trainer goes through the service's gate, under the name of its step. `separate_async` has two
    CheckpointEngineManagers, the second for the replicas that only sample. A manager itself is taken, too."""
    managers = [getattr(trainer, name) for name in MANAGERS if hasattr(trainer, name)] or [trainer]
    named = []
    for manager in managers:
        manager.update_weights = _fenced_update(manager.update_weights, service, named)


def _fenced_update(update, service, named):
    @functools.wraps(update)
    def update_weights(global_steps=None):
        # After a validation's reward model has used the GPUs, verl loads the weights again and says no step. They are those of its last update.
        if global_steps is None and not named:
            raise ValueError("verl loads weights without a step, and none of its updates had one: call fence before trainer.fit")
        step = named[-1] if global_steps is None else global_steps
        with fenced(service, step):
            done = update(global_steps)
        named[:] = [step]
        return done

    return update_weights


@functools.cache
def _live_of(key, samples, replay, service, spec):
    return Live(Service(**json.loads(service)).set(key, samples=samples, **json.loads(spec)), format="verl", replay=replay)
