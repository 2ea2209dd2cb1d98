"""Runs clients/python/examples/grpo_trl.py on the taught policy, and prints what each batch earned (docs/learning.md).

Prints the same JSON lines as `train.py`. A step is one batch, which TRL trains `--epochs` times.
"""

import json
import time

import grpo_trl
import torch
from trl import GRPOTrainer

#: What a batch has of each row's sampling.
ROW = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask", "sampling_per_token_logps")


class Saying(GRPOTrainer):
    batches, said, began, sampled = 0, None, 0.0, 0.0

    def _generate_and_score_completions(self, inputs):
        self._say()
        self.began = time.monotonic()
        batch = super()._generate_and_score_completions(inputs)
        self.sampled = time.monotonic()
        ratios = torch.cat([_ratios(self.model, *row) for row in zip(*(batch[name] for name in ROW))])
        self.said |= {"worst_ratio": (ratios - 1).abs().max().item(), "trained_tokens": len(ratios)}
        return batch

    def _calculate_rewards(self, inputs, prompts, *args):
        found = super()._calculate_rewards(inputs, prompts, *args)
        rewards = {}
        for prompt, reward in zip(prompts, found[:, 0].tolist()):
            rewards.setdefault(prompt, []).extend([reward] if reward == reward else [])
        measured = [reward for each in rewards.values() for reward in each]
        versions = {version for row in inputs for version in row["alidade_policies"]}
        self.said = {
            "step": self.batches,
            "reward": sum(measured) / max(1, len(measured)),
            "rewards": {task: sum(each) / len(each) if each else None for task, each in sorted(rewards.items())},
            "rollouts": len(measured),
            "lag": 0 if versions == {f"step-{self.state.global_step}"} else None,
        }
        return found

    def train(self, *args, **named):
        done = super().train(*args, **named)
        self._say()
        return done

    def _say(self):
        """The line of the last batch, when its training is done."""
        if self.said is None:
            return
        sampling, training = self.sampled - self.began, time.monotonic() - self.sampled
        # TRL loads the new weights when it asks for the next batch.
        self.said["seconds"] = {"update": None, "sample": round(sampling, 2), "train": round(training, 2)}
        print(json.dumps(self.said), flush=True)
        self.said, self.batches = None, self.batches + 1


@torch.no_grad()
def _ratios(model, prompt, prompt_mask, completion, completion_mask, tool_mask, old):
    """Importance ratios of a row's trained tokens. Computed at the positions at which they were sampled, because TRL's padding shifts
    short prompts and so changes the rounding. Leaves out tokens that no layer's window reaches."""
    prompt, length = prompt[prompt_mask.bool()], int(completion_mask.sum())
    ids = torch.cat([prompt, completion[:length]])
    begin = max(0, len(prompt) - model.config.sliding_window * model.config.num_hidden_layers)
    at = torch.arange(begin, len(ids))[None]
    logits = model(ids[None, begin:], position_ids=at, logits_to_keep=length + 1).logits[0, :-1].float()
    new = logits.log_softmax(-1).gather(-1, completion[:length, None])[:, 0]
    return (new - old[:length]).exp()[tool_mask[:length].bool()]


if __name__ == "__main__":
    grpo_trl.main(Saying)
