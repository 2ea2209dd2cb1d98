"""slime: its data source, its rollout (groups, filters), its rewards, train data and schedule over two data parallel ranks, and the
parts of its loss. Stubbed: SGLang, Megatron and Ray's object store; the model is one on the CPU."""

import torch
from actor import STEPS, Actor
from alidade.slime import fence
from slime_rows import LAYOUT, options, samples_of_export, take_step, workers
from stand_ins import stand_in_for

stand_in_for("sglang", "sglang_router", "megatron")

import ray
from slime.ray import rollout as manager
from slime.rollout import sglang_rollout
from slime.rollout.data_source import RolloutDataSource
from slime.utils.misc import load_function
from slime.utils.ppo_utils import compute_policy_loss
from slime.utils.types import Sample

VERSION = "checkout"


class Trainer:
    """What slime's own `train.py` calls an actor model."""

    def __init__(self, rig):
        self.actor, self.step = Actor(rig), 0

    def update_weights(self):
        self.actor.load(f"step-{self.step}")


def run(rig):
    ray.put = lambda value, **_: value
    sglang_rollout.get = workers
    args = arguments(rig)
    rollouts = object.__new__(manager.RolloutManager.__ray_metadata__.modified_class)
    rollouts.args, rollouts.data_source, rollouts.generate_rollout = args, RolloutDataSource(args), sglang_rollout.generate_rollout
    rollouts.custom_reward_post_process_func = load_function(args.custom_reward_post_process_path)
    rollouts.custom_convert_samples_to_train_data_func = None
    rollouts.train_parallel_config = LAYOUT
    trainer = Trainer(rig)
    fence(trainer, rig.service)
    for step in range(STEPS):
        trainer.step = step
        trainer.update_weights()
        samples, _ = rollouts._get_rollout_data(step)
        live = loss_of(trainer.actor, shards_of(rollouts, samples))
        keys = {sample.group_index: str(sample.group_index) for sample in samples}
        export = loss_of(trainer.actor, shards_of(rollouts, samples_of_export(rig, args, keys, "slime", Sample)))
        take_step(step, trainer.actor, samples, live, export)


def shards_of(rollouts, samples):
    return rollouts._split_train_data_by_dp(rollouts._convert_samples_to_train_data(samples))


def loss_of(actor, shards):
    loss, new, old, masks = 0, [], [], []
    for box in shards:
        shard = box.inner
        for at, tokens in enumerate(shard["tokens"]):
            length = shard["response_lengths"][at]
            got = actor.logprobs(torch.as_tensor(tokens))[-length:]
            sampled, mask = (torch.as_tensor(shard[name][at]).float() for name in ("rollout_log_probs", "loss_masks"))
            advantage = torch.full_like(got, float(shard["rewards"][at]))
            pg, _ = compute_policy_loss(sampled - got, advantage, 0.2, 0.28)
            # One mean a rollout, whose tokens may lie in several rows.
            loss = loss + (pg * mask).sum() / max(1, shard["rollout_mask_sums"][at])
            new.append(got), old.append(sampled), masks.append(mask)
    return loss, torch.cat(new), torch.cat(old), torch.cat(masks)


def arguments(rig):
    return options(
        rig, "slime",
        custom_generate_function_path="alidade.slime.generate",
        custom_reward_post_process_path="alidade.loaders.slime.post_process_rewards",
        rollout_all_samples_process_path=None, rollout_sample_hook_path=None, load_debug_rollout_data=None, custom_rm_path=None,
        label_key=None, tool_key=None, multimodal_keys=None, apply_chat_template=False, apply_chat_template_kwargs=None, rollout_max_prompt_len=None,
        balance_by_flops=False, balance_data=False, sglang_dp_size=1, rollout_stop=None, rollout_stop_token_ids=None,
        partial_rollout=False, group_rm=False, reward_key=None, rollout_data_transport="object-store",
    )
