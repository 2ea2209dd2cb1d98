"""What the loops of slime and of miles share: their options, rows of an export as samples, and the line of a step."""

import json
from argparse import Namespace

from actor import SAMPLES, TASKS, exported, say, worst
from alidade.slime import pad_rows

RANKS = 2
LAYOUT = {"dp_size": RANKS, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}


class Options(Namespace):
    """The trainer's options; one that is not named here is not given."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def options(rig, name, **own):
    """`name`: of the trainer. `own`: options that only this trainer has."""
    data = rig.folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps({"prompt": task, "metadata": {"task_id": task}}) + "\n" for task in TASKS))
    return Options(
        alidade={"set": rig.key, "service": rig.address},
        dynamic_sampling_filter_path="alidade.slime.keep_measured",
        rollout_sample_filter_path="alidade.slime.pad_rows",
        rollout_global_dataset=True, prompt_data=str(data), input_key="prompt", metadata_key="metadata", rollout_seed=1, rollout_shuffle=False,
        hf_checkpoint=rig.policy, n_samples_per_prompt=SAMPLES, rollout_batch_size=len(TASKS), over_sampling_batch_size=len(TASKS),
        global_batch_size=SAMPLES * len(TASKS), micro_batch_size=1, use_dynamic_batch_size=False,
        actor_num_nodes=1, actor_num_gpus_per_node=RANKS, tensor_model_parallel_size=1, pipeline_model_parallel_size=1, context_parallel_size=1,
        sglang_server_concurrency=64, rollout_num_gpus=1, rollout_num_gpus_per_engine=1, sglang_router_ip="127.0.0.1", sglang_router_port=1,
        rollout_temperature=1.0, rollout_top_p=1.0, rollout_top_k=-1, rollout_max_response_len=64, rollout_skip_special_tokens=False,
        advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True, start_rollout_id=0,
        **own,
    )


def samples_of_export(rig, args, keys, format, Sample):
    """The same groups as an export writes them, whose numbers begin at 0 in each, and padded as the live ones. `keys`: by the trainer's
    number of the group."""
    data = []
    for group, key in keys.items():
        rollouts = {}
        for row in exported(rig, [key], format):
            own = {"group_index": group, "rollout_id": group * SAMPLES + row["rollout_id"] % SAMPLES}
            rollouts.setdefault(own["rollout_id"], []).append(Sample.from_dict({**row, **own}))
        data.append(list(rollouts.values()))
    pad_rows(args, data)
    return [sample for group in data for rollout in group for sample in rollout]


def take_step(step, actor, samples, live, export):
    """Says what the step's losses are, and moves the weights. `live`, `export`: loss, new and old logprobs, mask."""
    real = [sample for sample in samples if not sample.remove_sample]
    rollouts = {sample.rollout_id for sample in real}
    say(step=step + 1, **worst(*live[1:]), **actor.compared(live[0], export[0]), rows=len(real), rollouts=len(rollouts))
    actor.step(live[0])


async def workers(url):
    """In the place of the router's answer: there are none."""
    return {"workers": []}
