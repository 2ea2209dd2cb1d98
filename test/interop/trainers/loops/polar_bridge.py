"""Polar's bridge for slime: its data source, rollout function (worker, callback, conversion to samples) and rewards, between slime's own
data set, train data and schedule over two ranks, and the parts of its loss. Stubbed as for slime: SGLang, Megatron and Ray's object store;
the model is one on the CPU."""

import os

import slime_bridge.rollout as bridge
from actor import SAMPLES, STEPS, TASKS, exported, say, worst
from alidade.slime import fence
from loops.slime import Trainer, loss_of, manager, ray, shards_of
from slime.utils.misc import load_function
from slime.utils.types import Sample
from slime_rows import LAYOUT, Options, options

VERSION = os.path.basename(os.path.dirname(os.path.dirname(os.path.dirname(bridge.__file__))))


class BridgeOptions(Options):
    """The bridge's own options have defaults, which count where one is not given."""

    def __getattr__(self, name):
        if name.startswith("polar_"):
            raise AttributeError(name)
        return super().__getattr__(name)


class Manager(manager.RolloutManager.__ray_metadata__.modified_class):
    """slime's own, without the engines that its `__init__` starts."""

    def __init__(self, args):
        self.args = args
        self.data_source = load_function(args.data_source_path)(args)
        self.generate_rollout = load_function(args.rollout_function_path)
        self.custom_reward_post_process_func = load_function(args.custom_reward_post_process_path)
        self.custom_convert_samples_to_train_data_func = None
        self.train_parallel_config = LAYOUT

    def _split_train_data_by_dp(self, data):
        boxes = super()._split_train_data_by_dp(data)
        for box in boxes:
            # slime 0.3.0 calls by `group_id` what later ones call by `rollout_id`.
            box.inner.setdefault("rollout_mask_sums", box.inner.get("group_mask_sums"))
        return boxes


def run(rig):
    ray.put = lambda value, **_: value
    args = arguments(rig)
    rollouts = Manager(args)
    trainer = Trainer(rig)
    fence(trainer, rig.service)
    for step in range(STEPS):
        trainer.step = step
        trainer.update_weights()
        samples, _ = rollouts._get_rollout_data(step)
        assert_sampled_by(step, samples)
        live = loss_of(trainer.actor, shards_of(rollouts, samples))
        export = loss_of(trainer.actor, shards_of(rollouts, samples_of_export(rig, samples)))
        counted = {sample.index for sample in samples if not sample.remove_sample}
        say(step=step + 1, **worst(*live[1:]), **trainer.actor.compared(live[0], export[0]), rows=len(samples), rollouts=len(counted))
        trainer.actor.step(live[0])
    # The bridge's evaluation has no callback: it polls.
    [found] = bridge.generate_rollout_polar_async(args, STEPS, rollouts.data_source, evaluation=True).data.values()
    assert len({sample.session_id for sample in found["samples"]}) == SAMPLES * len(TASKS), found
    assert len(found["rewards"]) == len(found["samples"]), "a session of the evaluation was not completed"
    bridge.stop_global_worker()


def assert_sampled_by(step, samples):
    """By the weights of this step alone, and the bridge was given back what it said of the task."""
    for sample in samples:
        told = sample.metadata["polar"]
        assert [one["step"] for one in told["result_metadata"]["alidade"]["policies"]] == [step], told["result_metadata"]
        assert (told["policy_version"], told["policy_staleness"], told["rollout_step"]) == (step, 0, step), told


def samples_of_export(rig, samples):
    """The rows that an export has of the same groups; a task of the bridge is a set of the service."""
    sets = {run["key"]: run["set_id"] for run in rig.service.request("GET", "/sets")["sets"]}
    found = []
    for group, task in {sample.group_index: sample.metadata["polar"]["task_id"] for sample in samples}.items():
        for row in exported(Named(rig.service, sets[f"polar/{task}"]), [task], "slime"):
            index = group * SAMPLES + row.pop("rollout_id") % SAMPLES
            reward = {"score": row["reward"]}
            found.append(Sample.from_dict({**row, "reward": reward, "group_index": group, "index": index, "group_id": index, "rollout_id": index}))
    return found


class Named:
    """A rig whose set is there already."""

    def __init__(self, service, id):
        self.service, self.id = service, id

    def set(self):
        return self


def arguments(rig):
    given = options(
        rig, "polar_bridge",
        rollout_function_path="slime_bridge.rollout.generate_rollout_polar_async",
        data_source_path="slime_bridge.data_source.CeilEpochRolloutDataSourceWithBuffer",
        custom_reward_post_process_path="slime_bridge.reward_post_process.post_process_rewards",
        reward_key="score", balance_data=False,
        polar_rollout_url=rig.address["url"].replace("://", f"://bridge:{rig.address['token']}@"),
        polar_instruction_template="Tell me about the {sample.prompt}.",
        polar_task_template={
            "agent": {"harness": None},
            "builder": {"strategy": "prefix_merging"},
            "metadata": {"alidade_task": "{sample.metadata.task_id}"},
        },
    )
    own = {
        # The ranks need not divide the rows: the bridge adds none.
        "use_dynamic_batch_size": True,
        "max_tokens_per_gpu": 4096,
        # The bridge divides by the spread of the other rewards of a group: thousands, where those are equal.
        "grpo_std_normalization": False,
    }
    return BridgeOptions(**{**vars(given), **own})
