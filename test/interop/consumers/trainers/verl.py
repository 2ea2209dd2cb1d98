"""verl: the batch of our loader is the one that its own agent loop makes of the same rows; then its logprobs, its
advantages with one entry a rollout, its loss, and its way to disk and back."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from alidade import read
from alidade.loaders.verl import advantages, data_proto
from policy import ratios
from verl import DataProto
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput, AgentLoopWorker, _InternalAgentLoopOutput
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.trainer.ppo.rollout_corr_helper import compute_offpolicy_metrics
from verl.utils.torch_functional import logprobs_from_logits
from verl.workers.config import ActorConfig

PACKAGE = "verl"


def ratios_of(file, policy):
    rows = list(read(file))
    prompt, response = (max(len(row[name]) for row in rows) for name in ("prompts", "responses"))
    batch = data_proto(rows, prompt_length=prompt, response_length=response, pad_token_id=policy.pad)
    compare(batch, by_agent_loop(rows, prompt, response, policy.pad))
    with tempfile.TemporaryDirectory() as folder:
        batch.save_to_disk(Path(folder) / "batch")
        tensors = DataProto.load_from_disk(Path(folder) / "batch").batch
    model = policy.copy()
    inputs = {name: tensors[name] for name in ("input_ids", "attention_mask", "position_ids")}
    new = logprobs_from_logits(model(**inputs).logits[:, prompt - 1 : -1], tensors["responses"])
    mask, sampled = tensors["response_mask"], tensors["rollout_log_probs"]
    advantages(batch)
    settings = ActorConfig(strategy="fsdp", rollout_n=2, ppo_micro_batch_size_per_gpu=1)
    loss, *_ = get_policy_loss_fn("vanilla")(
        old_log_prob=sampled,
        log_prob=new,
        advantages=batch.batch["advantages"],
        response_mask=mask,
        loss_agg_mode="token-mean",
        config=settings,
    )
    compute_offpolicy_metrics(new.detach(), sampled, mask.float())
    policy.step(model, loss)
    return ratios(new, sampled, mask)


def by_agent_loop(rows, prompt, response, pad):
    """What verl makes of its own `AgentLoopOutput`s. Padding is done by its tokenizer there, and here by hand."""
    worker = object.__new__(getattr(getattr(AgentLoopWorker, "__ray_metadata__", None), "modified_class", AgentLoopWorker))
    worker.reward_loop_worker_handles = None
    inner = [padded(row, prompt, response, pad) for row in rows]
    return worker._postprocess(inner, {"uid": np.array([row["uid"] for row in rows], dtype=object)})


def padded(row, prompt, response, pad):
    def left(values, fill):
        return torch.tensor([[fill] * (prompt - len(values)) + values])

    def right(values, fill):
        return torch.tensor([values + [fill] * (response - len(values))])

    output = AgentLoopOutput(
        prompt_ids=row["prompts"],
        response_ids=row["responses"],
        response_mask=row["response_mask"],
        response_logprobs=row["rollout_log_probs"],
        reward_score=row["reward_score"],
        num_turns=row["num_turns"],
        metrics=AgentLoopMetrics(),
        extra_fields={"min_global_steps": row["min_global_steps"], "max_global_steps": row["max_global_steps"]},
    )
    one = output.as_dict()
    prompts, responses = left(row["prompts"], pad), right(row["responses"], pad)
    attention = torch.cat([left([1] * len(one["prompts"]), 0), right([1] * len(one["responses"]), 0)], 1)
    arrays = {"prompt_ids", "response_ids", "response_mask", "response_logprobs", "metrics"}
    return _InternalAgentLoopOutput(
        **output.model_dump(exclude=arrays),
        metrics=output.metrics,
        prompt_ids=prompts,
        response_ids=responses,
        input_ids=torch.cat([prompts, responses], 1),
        attention_mask=attention,
        position_ids=(attention.cumsum(1) - 1).clamp(0),
        response_mask=right(one["response_mask"].tolist(), 0),
        response_logprobs=right(one["rollout_log_probs"].tolist(), 0.0),
    )


def compare(ours, theirs):
    for name, tensor in theirs.batch.items():
        assert torch.equal(tensor.float(), ours.batch[name].float()), f"verl's own agent loop makes another {name}"
