"""agent-lightning: its adapter at both levels, joining turns and not."""

import torch
from agentlightning.verl.rollout_adapter import RolloutAdapter
from alidade.loaders.agent_lightning import completed_rollouts
from policy import ratios

PACKAGE = "agentlightning"


def ratios_of(file, policy):
    found = [at_level(level, file, policy) for level in ("trajectory", "transition")]
    assert len(found[0]) == len(found[1]), f"{[len(each) for each in found]} tokens are trained at the two levels"
    return max(found, key=lambda each: (each - 1).abs().max())


def at_level(level, file, policy):
    rollouts = completed_rollouts(file)
    longest = max(len(turn.prompt["token_ids"]) + len(turn.response["token_ids"]) for one in rollouts for turn in one.triplets)
    adapter = RolloutAdapter(
        max_prompt_length=longest,
        max_response_length=longest,
        device=torch.device("cpu"),
        pad_token_id=policy.pad,
        trace_aggregator_level=level,
    )
    batch = adapter.get_train_data_batch(rollouts)[0].batch
    assert not batch["is_drop_mask"].any()
    prompt = batch["prompts"].shape[1]
    new = policy.logprobs(batch["input_ids"], batch["attention_mask"])[:, prompt - 1 :]
    mask = batch["response_mask"] if "response_mask" in batch.keys() else batch["attention_mask"][:, prompt:]
    return ratios(new, batch["rollout_log_probs"], mask)
