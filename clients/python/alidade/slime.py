"""slime and miles on an Alidade service (docs/trainers-live.md), by their own options and a config file (`--custom-config-path`):

    --custom-generate-function-path alidade.slime.generate      # miles: alidade.slime.generate_miles
    --dynamic-sampling-filter-path alidade.slime.keep_measured
    --rollout-sample-filter-path alidade.slime.pad_rows
    --custom-reward-post-process-path alidade.loaders.slime.post_process_rewards      # slime alone

    alidade: {set: grpo-17, service: {url: http://10.0.0.1:8700}}                      # the config file
"""

import asyncio
import copy
import functools
import inspect
import json

from . import media
from .live import Live, fenced, is_measured, refuse_other_temperature
from .loaders.slime import replayed
from .service import Service
from .teachers import is_taught


async def generate(args, sample, sampling_params, evaluation=False):
    """The rows of the sample's rollout as slime's samples, with one `rollout_id`. Its place is that of slime's own counters,
    which lie in its checkpoint."""
    return await _samples(args, sample, sampling_params, evaluation)


async def generate_miles(input):
    from miles.rollout.base_types import GenerateFnOutput

    samples = await _samples(input.args, input.sample, input.sampling_params, input.evaluation)
    for sample in samples:
        sample.weight_versions = _updates_of(sample.weight_versions, input.args.start_rollout_id)
    return GenerateFnOutput(samples=samples)


def keep_measured(args, samples, **_):
    """Filters groups. If a rollout has no reward, its group has no baseline, so slime samples another group. A rollout that the service's
    teacher did not score counts as one without a reward. If the trainer replays experts, so does a rollout with a trained row that lacks some."""
    from importlib import import_module

    every = [sample for each in samples for sample in (each if isinstance(each, list) else [each])]
    output = import_module(f"{_package_of(every[0])}.rollout.filter_hub.base_types").DynamicFilterOutput
    is_whole = all(sample.reward is not None for sample in every)
    return output(keep=is_whole, reason=None if is_whole else "alidade_no_reward")


def pad_rows(args, data):
    """Filters batches. Adds masked rows to the last rollout of each step, until the data parallel ranks (and virtual pipeline stages)
    divide the number of rows. The masked rows weigh nothing, because they belong to that rollout."""
    rollouts = [rollout for group in data for rollout in group]
    for start in range(0, len(rollouts), args.global_batch_size):
        step = rollouts[start : start + args.global_batch_size]
        last = step[-1]
        align = _ranks(args) * _stages(args, _package_of(last[0])) * (1 if args.use_dynamic_batch_size else args.micro_batch_size)
        for _ in range(-sum(map(len, step)) % align):
            row = copy.copy(min(last, key=lambda sample: len(sample.tokens)))
            row.loss_mask, row.remove_sample = [0] * row.response_length, True
            last.append(row)


def fence(actor_model, service, step=0):
    """Each `update_weights` of the trainer goes through the service's gate. `step`: the trainer's first one (start_rollout_id)."""
    update, steps = actor_model.update_weights, iter(range(step, 2**63))

    @functools.wraps(update)
    def update_weights(*args, **kwargs):
        with fenced(service, next(steps)):
            return update(*args, **kwargs)

    @functools.wraps(update)
    async def update_weights_of_miles(*args, **kwargs):
        gate = fenced(service, next(steps))
        # Shutting the gate waits for running calls. The thread lets miles' loop go on meanwhile.
        await asyncio.to_thread(gate.__enter__)
        # If the update fails, the gate stays shut.
        done = await update(*args, **kwargs)
        await asyncio.to_thread(gate.__exit__, None, None, None)
        return done

    actor_model.update_weights = update_weights_of_miles if inspect.iscoroutinefunction(update) else update_weights


async def _samples(args, sample, sampling_params, evaluation):
    if evaluation:
        raise ValueError("eval_interval is set: leave it out, and evaluate with a set of your own")
    if args.partial_rollout:
        raise ValueError("partial_rollout is set: leave it out, for a rollout is over or begins anew")
    if args.dynamic_sampling_filter_path is None:
        raise ValueError("dynamic_sampling_filter_path is missing: name alidade.slime.keep_measured, or a filter that calls it")
    refuse_other_temperature(sampling_params.get("temperature"))
    asked = args.alidade
    live = _live_of(asked["set"], args.n_samples_per_prompt, bool(getattr(args, "use_rollout_routing_replay", False)), json.dumps(asked.get("service") or {}))
    index = sample.index % args.n_samples_per_prompt
    key = live.key_of(sample.group_index, index)
    line = await live.rollout(key, index, (sample.metadata or {})["task_id"])
    if not (is_measured(line) and is_taught(line)) or (live.replay and not live.replay.gives(line)):
        sample.status, sample.remove_sample = type(sample).Status.ABORTED, True
        return [sample]
    shows = any(row.get("media") for row in line["rows"])
    processor = _processor_of(args.hf_checkpoint) if shows else None
    made = [sample_of(sample, row, line.get("pictures"), processor) for row in line["rows"]]
    for one, experts in zip(made, replayed(line["rows"], line.get("pictures"), live.replay.form) if live.replay else []):
        one.rollout_routed_experts = experts
    return made


def sample_of(sample, row, pictures=None, processor=None):
    """The trainer's sample with what a row of the format `verl` has. All samples of a rollout have one `rollout_id`."""
    made = copy.copy(sample)
    made.tokens, made.response_length, made.loss_mask = row["prompts"] + row["responses"], len(row["responses"]), list(row["response_mask"])
    made.rollout_log_probs, made.reward, made.rollout_id = row["rollout_log_probs"], row["reward_score"], sample.index
    steps = (row["min_global_steps"], row["max_global_steps"])
    made.weight_versions = [] if None in steps else sorted({str(step) for step in steps})
    made.status = type(sample).Status.COMPLETED
    if "teacher_logprobs" in row:
        # verl's entry i is for token i + 1; slime has one entry for each token of the response.
        first = len(row["prompts"]) - 1
        made.teacher_log_probs = [one for [one] in row["teacher_logprobs"][first : first + made.response_length]]
    shown = media.fields(row, pictures, processor, "slime")
    made.multimodal_inputs, made.multimodal_train_inputs = (shown.get(name) for name in ("multimodal_inputs", "multimodal_train_inputs"))
    return made


def _updates_of(steps, start):
    """Turns steps into miles' own count of weight updates, by which miles finds stale samples. The count begins at 1 at each start. A step
    before this start is 0. `start`: miles' first step; None if it comes from a checkpoint, so the count is unknown."""
    return [] if start is None else sorted({str(max(0, int(step) - start + 1)) for step in steps})


def _package_of(sample):
    """Returns `slime` or `miles`."""
    return type(sample).__module__.split(".")[0]


def _stages(args, package):
    """Returns the size of the groups in which virtual pipeline stages take micro batches. Only slime reads Megatron's option for it."""
    if (getattr(args, "virtual_pipeline_model_parallel_size", None) or 1) == 1:
        return 1
    told = getattr(args, "microbatch_group_size_per_vp_stage", None) if package == "slime" else None
    return told or args.pipeline_model_parallel_size


def _ranks(args):
    gpus = args.actor_num_nodes * args.actor_num_gpus_per_node
    return gpus // (args.tensor_model_parallel_size * args.pipeline_model_parallel_size * args.context_parallel_size)


@functools.cache
def _processor_of(checkpoint):
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(checkpoint)


@functools.cache
def _live_of(key, samples, replay, service):
    return Live(Service(**json.loads(service)).set(key, samples=samples), format="verl", replay=replay)
