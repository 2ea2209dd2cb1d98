"""AReaL: its batching, the shift that its actor makes, its gathering of logprobs and its loss."""

import torch
from alidade.loaders.areal import trajectories
from areal.utils.data import concat_padded_tensors
from areal.utils.functional import gather_logprobs, ppo_actor_loss_fn
from policy import ratios

PACKAGE = "areal"


def ratios_of(file, policy):
    batch = concat_padded_tensors(trajectories(file))
    model = policy.copy()
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"].long()).logits
    new = gather_logprobs(logits, torch.roll(batch["input_ids"], -1, -1))
    mask, sampled = torch.roll(batch["loss_mask"], -1, -1).bool(), torch.roll(batch["logprobs"], -1, -1)
    advantages = (batch["rewards"] - batch["rewards"].mean())[:, None].expand_as(sampled)
    loss, _ = ppo_actor_loss_fn(
        logprobs=new,
        proximal_logprobs=sampled,
        old_logprobs=sampled,
        advantages=advantages,
        eps_clip=0.2,
        eps_clip_higher=None,
        loss_mask=mask,
        c_clip=None,
    )
    policy.step(model, loss)
    return ratios(new, sampled, mask)
