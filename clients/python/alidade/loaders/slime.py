"""slime's and miles' own samples of rows that Alidade exported (alidade export --format slime, or miles).

    write_debug_dump("slime.jsonl", "rollout_0.pt", rollout_id=0)     # then: --load-debug-rollout-data rollout_0.pt
    for sample in samples("slime.jsonl"): ...                          # slime.utils.types.Sample

After `alidade score` each sample has `teacher_log_probs`, for on-policy distillation. With `replay=True` each has
`rollout_routed_experts`, for `--use-rollout-routing-replay`.

Where a rollout gave several samples, slime takes the whole batch for one group. Name this in its place:

    --custom-reward-post-process-path alidade.loaders.slime.post_process_rewards
"""

import itertools

from ..media import beside, with_fields
from ..routing import each_array, for_each_token, length
from ..rows import read
from ..teachers import checked


def samples(file, package="slime", processor=None, pictures=None, replay=False):
    """`package`: slime or miles. `processor`: the model's own, for rows with pictures."""
    from importlib import import_module

    Sample = import_module(f"{package}.utils.types").Sample
    return [Sample.from_dict(row) for row in _rows(file, processor, pictures, replay)]


def write_debug_dump(file, out, rollout_id, processor=None, pictures=None, replay=False):
    """The file that `--load-debug-rollout-data` reads. `rollout_id`: the trainer's number of the whole batch."""
    import torch

    torch.save({"rollout_id": rollout_id, "samples": list(_rows(file, processor, pictures, replay))}, out)


def _rows(file, processor, pictures, replay):
    place = pictures or beside(file)
    rows = list(checked(read(file), "teacher_log_probs"))
    for row, routed in zip(rows, replayed(rows, place) if replay else itertools.repeat(None)):
        row.pop("routing", None)
        # miles uses the same field names.
        yield {**with_fields(row, place, processor, "slime"), **({"rollout_routed_experts": routed} if replay else {})}


def replayed(rows, files, form=None):
    """Yields `rollout_routed_experts` of each row: an int32 array for all tokens but the last. slime and miles read this form. The bytes
    of a row are read only when its array is asked for."""
    made = each_array(rows, files, form)
    return (for_each_token(one, length(row) - 1, fill=range(one.shape[2])).astype("int32") for row, one in zip(rows, made))


def post_process_rewards(args, samples):
    """What slime makes of rewards, with one baseline entry a rollout, however many samples it has. Returns (raw, normalised), in order."""
    raw, groups = [sample.get_reward_value(args) for sample in samples], {}
    # slime asks this function whatever the estimator is, and by itself would leave the rewards of the others as they are.
    if _estimator(args) not in ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline") or not getattr(args, "rewards_normalization", True):
        return raw, raw
    for sample in samples:
        groups.setdefault(sample.group_index, {})[sample.rollout_id] = float(sample.get_reward_value(args))
    return raw, [
        _centred(list(groups[sample.group_index].values()), float(sample.get_reward_value(args)), args) for sample in samples
    ]


def _centred(rewards, reward, args):
    mean = sum(rewards) / len(rewards)
    by_deviation = getattr(args, "grpo_std_normalization", True) and _estimator(args) != "reinforce_plus_plus_baseline"
    if not by_deviation or len(rewards) < 2:
        return reward - mean
    deviation = (sum((each - mean) ** 2 for each in rewards) / (len(rewards) - 1)) ** 0.5
    return (reward - mean) / (deviation + 1e-6)


def _estimator(args):
    return getattr(args, "advantage_estimator", "grpo")
