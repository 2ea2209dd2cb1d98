"""GRPO on rollouts of a running `alidade service`, with PyTorch alone: the Python half of `npm run train` (docs/learning.md).

Prints a JSON line a step: rewards, seconds of each phase, staleness, and the worst |ratio - 1| before the first update.
"""

import argparse
import itertools
import json
import random
import time

import torch
from llama import load, save

from alidade import Service
from alidade.vllm import reload_weights


def shared_start(rows):
    """Number of tokens that all rows begin with. The token before the first trained one is not shared, because it predicts that one."""
    first, last = min(row["token_ids"] for row in rows), max(row["token_ids"] for row in rows)
    same = next((at for at, (one, other) in enumerate(zip(first, last)) if one != other), min(len(first), len(last)))
    return min(same, *(row["loss_mask"].index(1) - 1 for row in rows))


class Batch:
    """Rows of several rollouts. The harness's prompt, by far the most tokens, is computed once for all rows."""

    def __init__(self, rows):
        start = shared_start(rows)
        ends = [row["token_ids"][start:] for row in rows]
        length = max(map(len, ends))
        self.start = torch.tensor([rows[0]["token_ids"][:start]])
        self.ends = torch.tensor([end + [0] * (length - len(end)) for end in ends])
        mask = [row["loss_mask"][start:] + [0] * (length - len(row["loss_mask"]) + start) for row in rows]
        self.mask = torch.tensor(mask, dtype=torch.bool)[:, 1:]
        self.old = torch.tensor([logprob for row in rows for logprob, on in zip(row["logprobs"], row["loss_mask"]) if on])

    def logprobs(self, model):
        """Logprobs by the current model: [trained token, vocabulary], row by row."""
        hidden, _ = model(self.ends, model.read(self.start))
        return model.logits(hidden[:, :-1][self.mask]).log_softmax(-1)

    def sampled(self, logprobs):
        """The logprobs of the sampled tokens."""
        return logprobs.gather(-1, self.ends[:, 1:][self.mask][:, None])[:, 0]

    def for_tokens(self, by_row):
        """Repeats each row's number for each of its trained tokens."""
        return torch.tensor(by_row)[:, None].expand(self.mask.shape)[self.mask]


def advantages_of(group, shuffle):
    """Advantage of each measured rollout within its group. `shuffle` permutes the rewards, for the control."""
    rewards = {row["rollout_id"]: float(row["reward"]) for row in group.rows if row["in_baseline"] and row["reward"] is not None}
    values = list(rewards.values())
    if shuffle is not None:
        shuffle.shuffle(values)
    spread = torch.tensor(values).std().item() if len(values) > 1 else 0.0
    mean = sum(values) / max(1, len(values))
    return {rollout: (value - mean) / (spread + 1e-4) for rollout, value in zip(rewards, values)}


def train(model, taught, optimizer, groups, args, shuffle):
    """Clipped policy gradient, averaged over all trained tokens. Returns the worst |ratio - 1| before the first update, and tokens.

    A penalty on the divergence from the taught model keeps the turns well-formed: a wrong rollout makes all its tokens less likely,
    also those that form a tool call. The divergence is exact, over the whole vocabulary.
    """
    advantages = {rollout: value for group in groups for rollout, value in advantages_of(group, shuffle).items()}
    rows = [row for group in groups for row in group.rows if row["trained_tokens"] > 0 and row["rollout_id"] in advantages]
    batch = Batch(rows)
    advantage = batch.for_tokens([advantages[row["rollout_id"]] for row in rows])
    with torch.no_grad():
        reference = batch.logprobs(taught)
    worst = None
    for _ in range(args.epochs):
        optimizer.zero_grad()
        logprobs = batch.logprobs(model)
        ratio = (batch.sampled(logprobs) - batch.old).exp()
        if worst is None:
            worst = (ratio.detach() - 1).abs().max().item()
        if not any(advantages.values()):
            break    # all did equally well in each group: the divergence alone would lead back to the habits
        gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage).mean()
        divergence = (logprobs.exp() * (logprobs - reference)).sum(-1).mean()
        (args.divergence * divergence - gain).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return worst, len(batch.old)


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--policy", required=True, help="folder that the engine serves; its weights are overwritten at each step")
    asked.add_argument("--engine", required=True)
    asked.add_argument("--service", required=True, help="folder of the service")
    asked.add_argument("--task", action="append", required=True)
    asked.add_argument("--samples", type=int, required=True)
    asked.add_argument("--steps", type=int, required=True)
    asked.add_argument("--enough", type=float, required=True, help="ends when the mean reward of two steps in a row is at least this")
    asked.add_argument("--max-version-lag", type=int, required=True)
    asked.add_argument("--epochs", type=int, required=True)
    asked.add_argument("--rate", type=float, required=True)
    asked.add_argument("--divergence", type=float, default=0.1, help="what a nat of divergence from the taught model costs")
    asked.add_argument("--seed", type=int, required=True)
    asked.add_argument("--shuffle-rewards", action="store_true", help="the control: within each group, rewards go to rollouts by lot")
    args = asked.parse_args()
    torch.manual_seed(args.seed)
    shuffle = random.Random(args.seed) if args.shuffle_rewards else None
    service = Service(folder=args.service)
    run = service.set("train", samples=args.samples, max_version_lag=args.max_version_lag, groups_per_step=len(args.task))
    model, taught = load(args.policy), load(args.policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=0.0, betas=(0.9, 0.98))
    cursor, means = None, []
    for step in range(args.steps):
        times = [time.monotonic()]
        with service.weights(version=f"step-{step}", step=step):    # no call is sampled in here
            save(model, args.policy)
            reload_weights(args.engine, f"step-{step}")
        times.append(time.monotonic())
        ahead = range(step, min(step + args.max_version_lag + 1, args.steps))
        run.submit((f"{at}/{task}", task) for at in ahead for task in args.task)    # those that were submitted before are left as they are
        groups = list(itertools.islice(run.groups(after=cursor, step=step), len(args.task)))
        times.append(time.monotonic())
        worst, tokens = train(model, taught, optimizer, groups, args, shuffle)
        times.append(time.monotonic())
        cursor = groups[-1].cursor
        run.keep(cursor, step=step)
        rewards = {group.key.split("/", 1)[1]: [reward for reward in group.rewards if reward is not None] for group in groups}
        measured = [reward for group in rewards.values() for reward in group]
        means.append(sum(measured) / max(1, len(measured)))
        lags = [group.lag for group in groups]
        said = {
            "step": step,
            "reward": means[-1],
            "rewards": {task: sum(group) / len(group) if group else None for task, group in sorted(rewards.items())},
            "rollouts": len(measured),
            "worst_ratio": worst,
            "lag": None if None in lags else max(lags),
            "trained_tokens": tokens,
            "seconds": dict(zip(("update", "sample", "train"), (round(end - start, 2) for start, end in itertools.pairwise(times)))),
        }
        print(json.dumps(said), flush=True)
        if len(means) > 1 and min(means[-2:]) >= args.enough:
            break
    save(model, args.policy)    # with the last update, which the engine does not serve any more


if __name__ == "__main__":
    main()
