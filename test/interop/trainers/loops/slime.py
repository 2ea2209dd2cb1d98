"""slime: its data source, its rollout (groups, filters), its rewards, train data and schedule over two data parallel ranks, and the
parts of its loss. Stubbed: SGLang, Megatron and Ray's object store; the model is one on the CPU."""

import json
from argparse import Namespace

import torch
from actor import SAMPLES, STEPS, TASKS, Actor, exported, say, worst
from alidade.slime import fence, pad_rows
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
RANKS = 2


class Trainer:
    """What slime's own `train.py` calls an actor model."""

    def __init__(self, rig):
        self.actor, self.step = Actor(rig), 0

    def update_weights(self):
        self.actor.load(f"step-{self.step}")


async def workers(url):
    return {"workers": []}


def run(rig):
    ray.put = lambda value, **_: value
    sglang_rollout.get = workers
    args = arguments(rig)
    rollouts = object.__new__(manager.RolloutManager.__ray_metadata__.modified_class)
    rollouts.args, rollouts.data_source, rollouts.generate_rollout = args, RolloutDataSource(args), sglang_rollout.generate_rollout
    rollouts.custom_reward_post_process_func = load_function(args.custom_reward_post_process_path)
    rollouts.custom_convert_samples_to_train_data_func = None
    rollouts.train_parallel_config = {"dp_size": RANKS, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}
    trainer = Trainer(rig)
    fence(trainer, rig.service)
    for step in range(STEPS):
        trainer.step = step
        trainer.update_weights()
        samples, _ = rollouts._get_rollout_data(step)
        live = loss_of(trainer.actor, shards_of(rollouts, samples))
        groups = dict.fromkeys(sample.group_index for sample in samples)
        export = loss_of(trainer.actor, shards_of(rollouts, samples_of_export(rig, args, groups)))
        real = [sample for sample in samples if not sample.remove_sample]
        rolled = {sample.rollout_id for sample in real}
        say(step=step + 1, **worst(*live[1:]), **trainer.actor.compared(live[0], export[0]), rows=len(real), rollouts=len(rolled))
        trainer.actor.step(live[0])


def samples_of_export(rig, args, groups):
    """The same groups as an export writes them, whose numbers begin at 0 in each, and padded as the live ones."""
    data = []
    for group in groups:
        rollouts = {}
        for row in exported(rig, [str(group)], "slime"):
            own = {"group_index": group, "rollout_id": group * SAMPLES + row["rollout_id"] % SAMPLES}
            rollouts.setdefault(own["rollout_id"], []).append(Sample.from_dict({**row, **own}))
        data.append(list(rollouts.values()))
    pad_rows(args, data)
    return [sample for group in data for rollout in group for sample in rollout]


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


class Options(Namespace):
    """Its options; one that is not named here is not given."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def arguments(rig):
    data = rig.folder / "slime.jsonl"
    data.write_text("".join(json.dumps({"prompt": task, "metadata": {"task_id": task}}) + "\n" for task in TASKS))
    return Options(
        alidade={"set": rig.key, "service": rig.address},
        custom_generate_function_path="alidade.slime.generate",
        dynamic_sampling_filter_path="alidade.slime.keep_measured",
        rollout_sample_filter_path="alidade.slime.pad_rows",
        custom_reward_post_process_path="alidade.loaders.slime.post_process_rewards",
        rollout_all_samples_process_path=None, rollout_sample_hook_path=None, load_debug_rollout_data=None, custom_rm_path=None,
        rollout_global_dataset=True, prompt_data=str(data), input_key="prompt", label_key=None, metadata_key="metadata", tool_key=None, multimodal_keys=None,
        apply_chat_template=False, apply_chat_template_kwargs=None, rollout_seed=1, rollout_shuffle=False, rollout_max_prompt_len=None,
        hf_checkpoint=rig.policy, n_samples_per_prompt=SAMPLES, rollout_batch_size=len(TASKS), over_sampling_batch_size=len(TASKS),
        global_batch_size=SAMPLES * len(TASKS), micro_batch_size=1, use_dynamic_batch_size=False, balance_by_flops=False, balance_data=False,
        actor_num_nodes=1, actor_num_gpus_per_node=RANKS, tensor_model_parallel_size=1, pipeline_model_parallel_size=1, context_parallel_size=1,
        sglang_server_concurrency=64, rollout_num_gpus=1, rollout_num_gpus_per_engine=1, sglang_dp_size=1, sglang_router_ip="127.0.0.1", sglang_router_port=1,
        rollout_temperature=1.0, rollout_top_p=1.0, rollout_top_k=-1, rollout_max_response_len=64, rollout_stop=None, rollout_stop_token_ids=None,
        rollout_skip_special_tokens=False, partial_rollout=False, group_rm=False, reward_key=None, advantage_estimator="grpo", rewards_normalization=True,
        grpo_std_normalization=True, rollout_data_transport="object-store", start_rollout_id=0,
    )
