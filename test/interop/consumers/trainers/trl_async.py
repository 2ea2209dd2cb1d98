"""TRL's asynchronous GRPO: its queue, batcher and packer, which forwards a shared prefix once. Its attention kernel needs
a GPU, so the packed row goes through the same tree attention as a mask; the positions and targets are TRL's."""

import queue
from collections import defaultdict

import torch
from alidade.loaders.trl import rollout_samples
from policy import ratios
from trl.experimental.async_grpo.async_grpo_trainer import DataCollatorForRollout, FixedCountBatcher, RolloutQueueDataset

PACKAGE = "trl"


def ratios_of(file, policy):
    samples, waiting, metrics = list(rollout_samples(file)), queue.Queue(), defaultdict(list)
    for sample in samples:
        waiting.put(sample)
    version = max(sample.model_version for sample in samples)
    dataset = RolloutQueueDataset(waiting, lambda: version, lambda _: None, 60, metrics, max_staleness=version)
    [rows] = [next(iter(FixedCountBatcher(dataset, num_processes=1, microbatch_size=len(samples))))]
    batch = DataCollatorForRollout(pad_token_id=policy.pad, num_processes=1, metrics=metrics)([rows])
    return packed_ratios(policy.model, {name: value[0] for name, value in batch.items() if torch.is_tensor(value) and value.ndim == 2})


@torch.no_grad()
def packed_ratios(model, row):
    """A position's prediction may serve several samples; the label is the same for all of them."""
    mask = torch.full((len(row["input_ids"]),) * 2, torch.finfo(torch.float32).min)
    mask[tree_mask(row)] = 0
    inputs = {"input_ids": row["input_ids"][None], "position_ids": row["position_ids"][None]}
    logits = model(**inputs, attention_mask=mask[None, None]).logits[0]
    at = row["token_index"]
    new = logits[at].gather(-1, row["shift_labels"][at][:, None])[:, 0] - logits[at].logsumexp(-1)
    return ratios(new, row["old_log_probs"], torch.ones(len(at)))


def tree_mask(row):
    """[N, N]: which packed tokens each one sees, from the paths that TRL lays out for its kernel."""
    sees = torch.zeros((len(row["input_ids"]),) * 2, dtype=torch.bool)
    q, k = row["tree_cu_seqlens_q"].tolist(), row["tree_cu_seqlens_k"].tolist()
    for q0, q1, k0, k1 in zip(q, q[1:], k, k[1:]):
        path = row["tree_kv_index"][k0:k1]
        for at in range(q0, q1):
            sees[at, path[: len(path) - (q1 - at) + 1]] = True
    return sees
