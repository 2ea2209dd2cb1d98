"""verl's own objects of rows that Alidade exported (alidade export --format verl).

    rows = list(read("verl.jsonl"))
    batch = data_proto(rows, prompt_length=1024, response_length=8192, pad_token_id=0)    # the classic trainer's batch
    put(tq, rows, global_steps=7)                                                          # the V1 trainers' queue

After `alidade score` both have `teacher_ids` and `teacher_logprobs`, which verl's distillation losses read.

With pictures: `processor=hf_processor(MODEL), pictures="media"` (verl.utils), the folder that lies beside the rows.

With `replay=True, pictures="media"` both have `routed_experts`, for `actor_rollout_ref.rollout.enable_rollout_routing_replay`.

A rollout of several rows has one `uid_session` in `key`. verl's V1 trainers count it once; for a classic trainer do the
same with `advantages(batch, rows)`.
"""

import inspect

from ..media import MediaError, tensors as tensors_of
from ..routing import arrays, for_each_token
from ..rows import read  # noqa: F401  (a user of this module needs no other)
from ..teachers import checked


def data_proto(rows, prompt_length, response_length, pad_token_id, processor=None, pictures=None, replay=False):
    """A DataProto as verl's agent loop makes it: prompts padded left, responses right. Longer rows are refused, not cut."""
    import numpy as np
    import torch
    from tensordict import TensorDict
    from verl import DataProto

    rows = list(rows)
    taught = _taught(rows)
    for row in rows:
        for name, length in (("prompts", prompt_length), ("responses", response_length)):
            if len(row[name]) > length:
                raise ValueError(f"{row['key']}: {name} has {len(row[name])} tokens, more than {length}: export with --max-tokens")

    def left(values, fill):
        return torch.tensor([[fill] * (prompt_length - len(value)) + value for value in values])

    def right(values, fill):
        return torch.tensor([value + [fill] * (response_length - len(value)) for value in values])

    prompts, responses = left([row["prompts"] for row in rows], pad_token_id), right([row["responses"] for row in rows], pad_token_id)
    attention = torch.cat([left([[1] * len(row["prompts"]) for row in rows], 0), right([[1] * len(row["responses"]) for row in rows], 0)], 1)
    scores = torch.zeros(len(rows), response_length)
    for at, row in enumerate(rows):
        scores[at, len(row["responses"]) - 1] = row["reward_score"]
    tensors = {
        "prompts": prompts,
        "responses": responses,
        "response_mask": right([row["response_mask"] for row in rows], 0),
        "input_ids": torch.cat([prompts, responses], 1),
        "attention_mask": attention,
        "position_ids": (attention.cumsum(1) - 1).clamp(0),
        "rollout_log_probs": right([[float(each) for each in row["rollout_log_probs"]] for row in rows], 0.0),
        "rm_scores": scores,
    }
    if taught:
        # Over the whole width, as verl pads what its own teacher gives.
        places = len(rows[0]["teacher_ids"][0])
        wide = lambda name, fill: torch.stack([
            torch.tensor([[fill] * places] * (prompt_length - len(row["prompts"])) + row[name] + [[fill] * places] * (response_length - len(row["responses"])))
            for row in rows
        ])
        tensors |= {"teacher_ids": wide("teacher_ids", pad_token_id).int(), "teacher_logprobs": wide("teacher_logprobs", 0.0).float()}
    if replay:
        made = replayed(rows, pictures)
        tensors["routed_experts"] = torch.zeros(len(rows), prompt_length + response_length, *made[0].shape[1:], dtype=torch.int16)
        for at, (row, one) in enumerate(zip(rows, made)):
            start = prompt_length - len(row["prompts"])
            tensors["routed_experts"][at, start : start + len(one)] = torch.from_numpy(one)
    columns = {"uid": "uid", "__num_turns__": "num_turns", "min_global_steps": "min_global_steps", "max_global_steps": "max_global_steps", "data_source": "data_source", "alidade_key": "key"}
    others = {}
    made = [multi_modal(row, processor, pictures) for row in rows]
    if any(one["multi_modal_inputs"] for one in made):
        others["multi_modal_inputs"] = np.empty(len(rows), dtype=object)
        others["multi_modal_inputs"][:] = [one["multi_modal_inputs"] for one in made]
    if processor is not None:
        # As many planes as verl's processor makes. Padding keeps 0, because attention never reads it.
        planes = [one["position_ids"] for one in made]
        tensors["position_ids"] = torch.zeros(len(rows), *planes[0].shape[:-1], prompt_length + response_length, dtype=torch.long)
        for at, row in enumerate(rows):
            start = prompt_length - len(row["prompts"])
            tensors["position_ids"][at, ..., start : start + planes[at].shape[-1]] = planes[at]
    for name, key in columns.items():
        others[name] = np.empty(len(rows), dtype=object)
        others[name][:] = [row[key] for row in rows]
    return DataProto(batch=TensorDict(tensors, batch_size=len(rows)), non_tensor_batch=others, meta_info={"reward_extra_keys": []})


def replayed(rows, files, form=None):
    """Returns `AgentLoopOutput.routed_experts` of each row: an int16 array for all tokens, or for all but the last."""
    return [one.astype("int16") for one in arrays(rows, files, form)]


def _taught(rows):
    # Every row is looked at, whatever the first one says.
    return any(["teacher_logprobs" in row for row in checked(rows, "teacher_logprobs")])


def multi_modal(row, processor=None, pictures=None):
    """Fields that verl's agent loop computes from a row's pictures: `multi_modal_inputs` ({} without any) and `position_ids`."""
    import torch

    made = tensors_of(row, pictures, processor)
    length = len(row["prompts"]) + len(row["responses"])
    straight = torch.arange(length)
    rope = getattr(processor, "get_rope_index", None)
    if made and processor is not None and rope is None:
        raise MediaError("the processor has no get_rope_index, so positions behind a picture are unknown: take verl's own, hf_processor")
    if rope is None:
        return {"multi_modal_inputs": {}, "position_ids": straight}
    if not made:
        return {"multi_modal_inputs": {}, "position_ids": straight.expand(4, -1).clone()}
    kinds, grids = made.pop("mm_token_type_ids"), made["image_grid_thw"]
    ids = torch.tensor([row["prompts"] + row["responses"]])
    asked = {"mm_token_type_ids": kinds[None]} if "mm_token_type_ids" in inspect.signature(rope).parameters else {}
    seen, _ = rope(input_ids=ids, image_grid_thw=grids, video_grid_thw=None, attention_mask=torch.ones_like(ids), **asked)
    made["images_seqlens"] = torch.repeat_interleave(grids[:, 1] * grids[:, 2], grids[:, 0])
    return {"multi_modal_inputs": made, "position_ids": torch.cat([straight[None], seen[:, 0]])}


def advantages(batch, **settings):
    """GRPO advantages with one baseline entry a rollout, however many rows it has; `settings` as verl's function takes them."""
    from verl.trainer.ppo.core_algos import AdvantageEstimator
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    if "token_level_rewards" not in batch.batch:
        batch.batch["token_level_rewards"] = batch.batch["rm_scores"]
    return compute_advantage_for_multi_trajectories(batch, list(batch.non_tensor_batch["alidade_key"]), AdvantageEstimator.GRPO, **settings)


def transfer_queue(rows, global_steps, processor=None, pictures=None, replay=False):
    """Keys, unpadded fields and tags of TransferQueue, as verl's `agent_loop_tq` puts them. `global_steps`: the trainer's own."""
    import torch

    rows, keys, fields, tags = list(rows), [], [], []
    taught = _taught(rows)
    routed = replayed(rows, pictures) if replay else []
    for at, row in enumerate(rows):
        if row["min_global_steps"] is None:
            raise ValueError(f"{row['key']}: the step of the policy that sampled it is not recorded, and verl's queue needs it")
        prompts, responses = torch.tensor(row["prompts"]), torch.tensor(row["responses"])
        mask, scores = torch.tensor(row["response_mask"]), torch.zeros(len(row["responses"]))
        scores[-1] = row["reward_score"]
        ids = torch.cat([prompts, responses])
        keys.append(row["key"])
        fields.append({
            "prompts": prompts, "responses": responses, "response_mask": mask, "loss_mask": mask, "input_ids": ids,
            **multi_modal(row, processor, pictures), "rollout_log_probs": torch.tensor(row["rollout_log_probs"], dtype=torch.float32),
            "rm_scores": scores, "num_turns": row["num_turns"], "uid": row["uid"], "data_source": row["data_source"],
        })
        if taught:
            fields[-1]["teacher_ids"] = torch.tensor(row["teacher_ids"], dtype=torch.int32)
            fields[-1]["teacher_logprobs"] = torch.tensor(row["teacher_logprobs"], dtype=torch.float32)
        if replay:
            fields[-1]["routed_experts"] = torch.from_numpy(for_each_token(routed[at], len(ids)))
        tags.append({
            "status": "success", "prompt_len": len(prompts), "response_len": len(responses), "seq_len": len(ids),
            "global_steps": global_steps, "min_global_steps": row["min_global_steps"], "max_global_steps": row["max_global_steps"],
        })
    return keys, fields, tags


def put(queue, rows, global_steps, partition_id="train", processor=None, pictures=None, replay=False):
    """Puts the rows and says that their prompts are done. `queue`: the transfer_queue module."""
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    rows = list(rows)
    keys, fields, tags = transfer_queue(rows, global_steps, processor, pictures, replay)
    queue.kv_batch_put(keys=keys, fields=list_of_dict_to_tensordict(fields), tags=tags, partition_id=partition_id)
    for uid in dict.fromkeys(row["uid"] for row in rows):
        queue.kv_put(key=uid, partition_id=partition_id, tag={"status": "finished"})
