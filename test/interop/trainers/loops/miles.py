"""miles: its data source, its rollout (groups, filters), its rewards, train data, schedule over two data parallel ranks, advantages and
loss. Stubbed: SGLang, Megatron, what places and monitors servers, Ray's object store; the model is one on the CPU."""

import asyncio

import torch
from actor import STEPS, Actor
from alidade.live import Live
from alidade.slime import fence, pad_rows
from slime_rows import LAYOUT, RANKS, Options, options, samples_of_export, take_step, workers
from stand_ins import stand_in_for

stand_in_for("sglang", "sglang_router", "megatron")

import ray
import sglang_router
from miles.backends.training_utils.data import get_data_iterator, get_rollout_data
from miles.backends.training_utils.loss import compute_advantages_and_returns, loss_function
from miles.backends.training_utils.parallel import ParallelState, set_parallel_state
from miles.ray.rollout import rollout_manager as manager
from miles.ray.rollout.train_data_conversion import convert_samples_to_train_data, split_train_data_by_dp
from miles.rollout.base_types import RolloutFnConstructorInput
from miles.rollout.data_source import RolloutDataSourceWithBuffer
from miles.rollout.inference_rollout import inference_rollout_train
from miles.rollout.inference_rollout.compatibility import load_rollout_function
from miles.utils import object_store
from miles.utils.dp_schedule import build_dp_schedule
from miles.utils.ft_utils.process_group_utils import GroupInfo
from miles.utils.types import Sample

VERSION = "checkout"


class Trainer:
    """What miles' own `train.py` calls an actor model."""

    def __init__(self, rig):
        self.actor, self.step = Actor(rig), 0

    async def update_weights(self, rollout_id=None):
        self.actor.load(f"step-{self.step}")


def schedule_stages(args):
    """Its schedule over virtual pipeline stages takes rows that were padded for them, and raises for others."""
    staged = Options(**{**vars(args), "actor_num_gpus_per_node": 2 * RANKS, "pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": 2})
    data = [[[Sample(tokens=[1, 2], response_length=1, rollout_id=rollout) for _ in range(1 + rollout // 7)] for rollout in range(args.global_batch_size)]]
    pad_rows(staged, data)
    rows = [row for rollout in data[0] for row in rollout]
    layout = {**LAYOUT, "vpp_size": 2, "microbatch_group_size_per_vp_stage": 2}
    ids = [row.rollout_id for row in rows]
    build_dp_schedule(staged, layout, [2] * len(rows), global_batch_size=args.global_batch_size, rollout_indices=ids)


def run(rig, **changed):
    ray.put = lambda value, **_: value
    ray.get = lambda value, **_: value
    torch.cuda.current_device = lambda: "cpu"
    sglang_router.__version__ = "0.3.0"
    inference_rollout_train.get = workers
    args = arguments(rig)
    args.__dict__.update(changed)
    schedule_stages(args)
    asyncio.run(train(rig, args))


async def train(rig, args):
    object_store.init_instance(args, contribute_segment=False)
    rollouts, trainer = manager_of(args), Trainer(rig)
    fence(trainer, rig.service)
    keys = remember_keys()
    for step in range(STEPS):
        trainer.step = step
        await trainer.update_weights(rollout_id=step)
        # As its actors say it after each update.
        rollouts.set_weight_version(step + 1)
        pack = await rollouts.generate(step)
        samples = rollouts.samples
        assert {version for sample in samples for version in sample.weight_versions} == {str(step + 1)}, "miles counts its updates from 1"
        live = loss_of(trainer.actor, args, pack["data_ref"])
        asked = {sample.group_index: keys[sample.group_index] for sample in samples}
        export = loss_of(trainer.actor, args, refs_of(args, samples_of_export(rig, args, asked, "miles", Sample)))
        take_step(step, trainer.actor, samples, live, export)


def remember_keys():
    """The key under which each group was asked for last."""
    keys, key_of = {}, Live.key_of

    def remembered(live, group, index):
        keys[group] = key_of(live, group, index)
        return keys[group]

    Live.key_of = remembered
    return keys


def manager_of(args):
    """Its manager without servers, which only its constructor starts."""

    class Manager(manager.RolloutManager.__ray_metadata__.modified_class):
        async def _get_rollout_data(self, rollout_id):
            found = await super()._get_rollout_data(rollout_id)
            self.samples = found[0]
            return found

    made = object.__new__(Manager)
    made.args, made.data_source, made.servers, made.weight_version = args, RolloutDataSourceWithBuffer(args), {}, None
    made.generate_rollout = load_rollout_function(RolloutFnConstructorInput(args=args, data_source=made.data_source), args.rollout_function_path)
    made.use_legacy_rollout_v1 = made._rollout_ft_enabled = False
    made._health_monitors, made.train_parallel_config = [], LAYOUT
    made.custom_reward_post_process_func = made.custom_convert_samples_to_train_data_func = None
    return made


def refs_of(args, samples):
    data = convert_samples_to_train_data(args, samples, metadata={}, custom_convert_samples_to_train_data_func=None, custom_reward_post_process_func=None)
    return split_train_data_by_dp(args, data, LAYOUT)


def loss_of(actor, args, refs):
    """The mean over ranks, as their gradients are reduced."""
    loss, new, old, masks = 0, [], [], []
    for rank in range(RANKS):
        set_parallel_state(parallel_state(rank))
        data, _ = get_rollout_data(args, refs)
        compute_advantages_and_returns(args, data)
        [iterator], [micro_batches], *rest = get_data_iterator(args, [None], data)
        keys = ["tokens", "loss_masks", "response_lengths", "total_lengths", "advantages", "rollout_log_probs", "rollout_mask_sums"]
        for _ in range(micro_batches):
            batch = iterator.get_next(keys)
            batch["unconcat_tokens"] = batch["tokens"]
            logits = torch.cat([actor.model(ids[None]).logits[0].float() for ids in batch["tokens"]])[None]
            part, _, _ = loss_function(args, batch, micro_batches, logits, num_rollouts=data["num_rollouts"][0])
            loss = loss + part / RANKS
            for ids, length, sampled, mask in zip(*(batch[key] for key in ("tokens", "response_lengths", "rollout_log_probs", "loss_masks"))):
                new.append(actor.logprobs(ids)[-length:]), old.append(sampled), masks.append(mask)
    return loss, torch.cat(new), torch.cat(old), torch.cat(masks)


def parallel_state(rank):
    ranks, one = GroupInfo(rank, RANKS, None), GroupInfo(0, 1, None)
    return ParallelState(intra_dp=ranks, intra_dp_cp=ranks, cp=one, tp=one, pp=one, ep=one, etp=one, indep_dp=one, microbatch_group_size_per_vp_stage=1)


def arguments(rig):
    return options(
        rig, "miles",
        custom_generate_function_path="alidade.slime.generate_miles",
        rollout_function_path="miles.rollout.inference_rollout.inference_rollout_common.InferenceRolloutFn",
        use_dynamic_global_batch_size=False, object_store_backend="ray",
        loss_type="policy_loss", eps_clip=0.2, eps_clip_high=0.28, entropy_coef=0, kl_coef=0, use_rollout_logprobs=True, qkv_format="thd",
        calculate_per_token_loss=False, log_probs_chunk_size=-1,
        # Its own softmax: the other one is Megatron's kernel.
        true_on_policy_mode=True,
    )
