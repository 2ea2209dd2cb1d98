"""GRPO in plain PyTorch, on rollouts of a running `alidade service` (docs/train-online.md).

    python grpo_torch.py --policy FOLDER --engine http://127.0.0.1:8000 --task my-task --steps 100

FOLDER is the model that vLLM serves; its files are overwritten with each step's weights. Kill it at any time and start it
again: model, optimizer and cursor are saved in one file.
"""

import argparse
import itertools
import json
import os

import torch
from transformers import AutoModelForCausalLM

from alidade import Service
from alidade.vllm import reload_weights


def logprobs_of(model, row):
    """[trained tokens of the row]: as the trainer's model sees them now, and as they were sampled."""
    ids = torch.tensor([row["token_ids"]], device=model.device)
    at = torch.tensor(row["loss_mask"], device=model.device).nonzero()[:, 0]
    logits = model(ids, logits_to_keep=at - 1).logits[0].float()    # a token is predicted at the place before it
    new = logits.log_softmax(-1).gather(-1, ids[0, at][:, None])[:, 0]
    old = [logprob for logprob, mask in zip(row["logprobs"], row["loss_mask"]) if mask]
    return new, torch.tensor(old, device=model.device)


def advantages_of(group):
    """By rollout: its reward against those of its group; what was not measured has none."""
    rewards = {row["rollout_id"]: row["reward"] for row in group.rows if row["in_baseline"] and row["reward"] is not None}
    values = torch.tensor([float(reward) for reward in rewards.values()])
    spread = values.std() if len(values) > 1 else torch.tensor(0.0)
    return {rollout: (float(reward) - values.mean()) / (spread + 1e-4) for rollout, reward in rewards.items()}


def train(model, optimizer, groups, epochs):
    """Clipped policy gradient, averaged over all trained tokens. Returns the worst |ratio - 1| before the first update."""
    advantages = {rollout: value for group in groups for rollout, value in advantages_of(group).items()}
    rows = [row for group in groups for row in group.rows if row["trained_tokens"] > 0 and row["rollout_id"] in advantages]
    total = sum(row["trained_tokens"] for row in rows)
    worst = 0.0
    for epoch in range(epochs):
        optimizer.zero_grad()
        for row in rows:
            new, old = logprobs_of(model, row)
            ratio, advantage = (new - old).exp(), advantages[row["rollout_id"]]
            if epoch == 0:
                worst = max(worst, (ratio.detach() - 1).abs().max().item())
            loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage).sum() / total
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return worst, total


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--policy", required=True)
    asked.add_argument("--engine", required=True)
    asked.add_argument("--service", default="runs/service", help="folder of the service")
    asked.add_argument("--task", action="append", required=True, help="a name that the service knows; one group of each a step")
    asked.add_argument("--set", default="grpo-torch")
    asked.add_argument("--samples", type=int, default=8)
    asked.add_argument("--max-version-lag", type=int, default=0, help="steps that rollouts may be sampled ahead of their training")
    asked.add_argument("--steps", type=int, default=10)
    asked.add_argument("--epochs", type=int, default=3)
    asked.add_argument("--rate", type=float, default=1e-6)
    asked.add_argument("--checkpoint", default="checkpoint.pt")
    args = asked.parse_args()
    service = Service(folder=args.service)
    run = service.set(args.set, samples=args.samples, max_version_lag=args.max_version_lag, groups_per_step=len(args.task))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(args.policy, dtype=torch.float32).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=0.0)
    step, cursor = 0, None
    if os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step, cursor = saved["step"], saved["cursor"]
    while step < args.steps:
        with service.weights(version=f"step-{step}", step=step):    # no call is sampled in here
            model.save_pretrained(args.policy)
            reload_weights(args.engine, f"step-{step}")
        ahead = range(step, min(step + args.max_version_lag + 1, args.steps))
        run.submit((f"{at}/{task}", task) for at in ahead for task in args.task)    # not again what an earlier life has submitted
        groups = list(itertools.islice(run.groups(after=cursor, step=step), len(args.task)))
        worst, trained = train(model, optimizer, groups, args.epochs)
        rewards = [reward for group in groups for reward in group.rewards if reward is not None]
        mean, policies = sum(rewards) / max(1, len(rewards)), sorted({name for group in groups for name in group.policies})
        print(json.dumps({"step": step, "reward": mean, "worst": worst, "tokens": trained, "policies": policies}), flush=True)
        step, cursor = step + 1, groups[-1].cursor
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "cursor": cursor}
        torch.save(saved, args.checkpoint + ".new")
        os.replace(args.checkpoint + ".new", args.checkpoint)
        run.keep(cursor, step=step)


if __name__ == "__main__":
    main()
