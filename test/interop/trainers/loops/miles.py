"""miles: its data source, its rollout (groups, filters), its rewards, train data, schedule over two data parallel ranks, advantages and
loss. Stubbed: SGLang, Megatron, what places and monitors servers, Ray's object store; the model is one on the CPU."""

import asyncio
import json
from argparse import Namespace

import torch
from actor import SAMPLES, STEPS, TASKS, Actor, exported, say, worst
from alidade.live import Live
from alidade.slime import fence, pad_rows
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
RANKS = 2
LAYOUT = {"dp_size": RANKS, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}


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


async def workers(url):
    return {"workers": []}


def run(rig, **options):
    ray.put = lambda value, **_: value
    ray.get = lambda value, **_: value
    torch.cuda.current_device = lambda: "cpu"
    sglang_router.__version__ = "0.3.0"
    inference_rollout_train.get = workers
    args = arguments(rig)
    args.__dict__.update(options)
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
        groups = dict.fromkeys(sample.group_index for sample in samples)
        export = loss_of(trainer.actor, args, refs_of(args, samples_of_export(rig, args, {group: keys[group] for group in groups})))
        real = [sample for sample in samples if not sample.remove_sample]
        rolled = {sample.rollout_id for sample in real}
        say(step=step + 1, **worst(*live[1:]), **trainer.actor.compared(live[0], export[0]), rows=len(real), rollouts=len(rolled))
        trainer.actor.step(live[0])


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


def samples_of_export(rig, args, groups):
    """The same groups as an export writes them, whose numbers begin at 0 in each, and padded as the live ones."""
    data = []
    for group, key in groups.items():
        rollouts = {}
        for row in exported(rig, [key], "miles"):
            own = {"group_index": group, "rollout_id": group * SAMPLES + row["rollout_id"] % SAMPLES}
            rollouts.setdefault(own["rollout_id"], []).append(Sample.from_dict({**row, **own}))
        data.append(list(rollouts.values()))
    pad_rows(args, data)
    return [sample for group in data for rollout in group for sample in rollout]


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


class Options(Namespace):
    """Its options; one that is not named here is not given."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def arguments(rig):
    data = rig.folder / "miles.jsonl"
    data.write_text("".join(json.dumps({"prompt": task, "metadata": {"task_id": task}}) + "\n" for task in TASKS))
    return Options(
        alidade={"set": rig.key, "service": rig.address},
        custom_generate_function_path="alidade.slime.generate_miles",
        dynamic_sampling_filter_path="alidade.slime.keep_measured",
        rollout_sample_filter_path="alidade.slime.pad_rows",
        rollout_function_path="miles.rollout.inference_rollout.inference_rollout_common.InferenceRolloutFn",
        rollout_global_dataset=True, prompt_data=str(data), input_key="prompt", metadata_key="metadata", rollout_seed=1, rollout_shuffle=False,
        hf_checkpoint=rig.policy, n_samples_per_prompt=SAMPLES, rollout_batch_size=len(TASKS), over_sampling_batch_size=len(TASKS),
        global_batch_size=SAMPLES * len(TASKS), micro_batch_size=1, use_dynamic_batch_size=False, use_dynamic_global_batch_size=False,
        actor_num_nodes=1, actor_num_gpus_per_node=RANKS, tensor_model_parallel_size=1, pipeline_model_parallel_size=1, context_parallel_size=1,
        sglang_server_concurrency=64, rollout_num_gpus=1, rollout_num_gpus_per_engine=1, sglang_router_ip="127.0.0.1", sglang_router_port=1,
        rollout_temperature=1.0, rollout_top_p=1.0, rollout_top_k=-1, rollout_max_response_len=64, rollout_skip_special_tokens=False,
        advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True, start_rollout_id=0, object_store_backend="ray",
        loss_type="policy_loss", eps_clip=0.2, eps_clip_high=0.28, entropy_coef=0, kl_coef=0, use_rollout_logprobs=True, qkv_format="thd",
        calculate_per_token_loss=False, log_probs_chunk_size=-1,
        # Its own softmax: the other one is Megatron's kernel.
        true_on_policy_mode=True,
    )
