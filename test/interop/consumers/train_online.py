"""clients/python/examples/grpo_trl.py as it stands, which also says the importance ratios of each batch before it trains on it.

Row by row, without TRL's padding on the left: it moves short prompts to far positions, whose rounding is TRL's own (1e-4 to
1e-3 in this model when prompts differ by 40 tokens). Each batch is trained once, so no update came after its sampling.
"""

import json

import grpo_trl
import torch
from policy import ratios
from trl import GRPOTrainer


class Saying(GRPOTrainer):
    def _compute_loss(self, model, inputs):
        names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask", "sampling_per_token_logps")
        found = torch.cat([ratios_of(model, *row) for row in zip(*(inputs[name] for name in names))])
        said = {
            "step": self.state.global_step,
            "reward": self._metrics["train"]["reward"][-1],
            "worst": (found - 1).abs().max().item(),
            "tokens": len(found),
        }
        print(json.dumps(said), flush=True)
        return super()._compute_loss(model, inputs)


@torch.no_grad()
def ratios_of(model, prompt, prompt_mask, completion, completion_mask, tool_mask, old):
    prompt, length = prompt[prompt_mask.bool()], int(completion_mask.sum())
    ids = torch.cat([prompt, completion[:length]])
    at = torch.arange(len(prompt), len(ids))
    logits = model(ids[None], logits_to_keep=at - 1).logits[0].float()
    new = logits.log_softmax(-1).gather(-1, ids[at][:, None])[:, 0]
    return ratios(new, old[:length], tool_mask[:length])


grpo_trl.main(Saying)
